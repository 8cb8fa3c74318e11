"""What became of a job's ticks, runs and skips, and what callers did to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from ringcron.client.values import Instant, Value
from ringcron.models import Cause, RunOutcome, SkipReason


@dataclass(frozen=True, kw_only=True, slots=True)
class Run(Value):
    """One attempt. `finished_at` and `outcome` are None while it is in progress."""

    run_id: str
    attempt: int
    scheduled_for: Instant
    cause: Cause
    worker_id: str
    lease_generation: int
    started_at: Instant
    finished_at: Instant | None
    outcome: RunOutcome | None
    error: str | None
    result: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Skip(Value):
    """`count` ticks from `first` to `last`, both included, that were deliberately not run."""

    first: Annotated[Instant, Field(alias="from")]
    last: Annotated[Instant, Field(alias="to")]
    count: int
    reason: SkipReason


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry(Value):
    """What a caller did to a job. `key_id` and `key_name`: the API key that was shown; None where none was needed."""

    at: Instant
    action: str
    key_id: str | None
    key_name: str | None
    request_id: str | None
    detail: Mapping[str, Any] | None
