"""Jobs, as callers define them and as the API shows them; contract.md §4 has the rules of each field.

Invariant: None in a definition means the API's default, which is not repeated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, TypedDict

from pydantic import PlainSerializer, PlainValidator

from ringcron.client.errors import ApiError, api_error
from ringcron.client.schedules import Cron, Every, Schedule
from ringcron.client.values import Duration, Instant, Value
from ringcron.models import Catchup, JobState, OnExhausted, Overlap

OnConflict = Literal["error", "keep", "replace"]

Refusal = Annotated[
    ApiError,
    PlainValidator(lambda problem: api_error(problem["status"], problem)),
    PlainSerializer(lambda error: error.problem),
]
"""A problem document inside an answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retry(Value):
    """How often and when an occurrence is tried again.

    The delay after attempt n is min(max_backoff, min_backoff × multiplier^(n−1)) × (0.5 + 0.5 × random).
    """

    max_attempts: int | None = None
    min_backoff: Duration | None = None
    max_backoff: Duration | None = None
    multiplier: float | None = None
    max_lost: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob(Value):
    """A job to be created: exactly one of `run_at` and `schedule`, and what is to be run."""

    run_at: Instant | None = None
    schedule: Schedule | None = None
    payload: Any = None
    handler: str | None = None
    key: str | None = None
    on_conflict: OnConflict | None = None
    name: str | None = None
    tags: tuple[str, ...] | None = None
    retry: Retry | None = None
    timeout: Duration | None = None
    alert_after_late: Duration | None = None
    alert_if_no_success_for: Duration | None = None
    overlap: Overlap | None = None
    catchup: Catchup | None = None
    catchup_window: Duration | None = None
    jitter: Duration | None = None
    on_exhausted: OnExhausted | None = None


class JobChanges(TypedDict, total=False):
    """What `Client.patch_job` may change. A name that is not given stays; None sets the default."""

    run_at: Instant | None
    schedule: Cron | Every | None
    payload: Any
    handler: str | None
    name: str | None
    tags: tuple[str, ...] | None
    retry: Retry | None
    timeout: timedelta | None
    alert_after_late: timedelta | None
    alert_if_no_success_for: timedelta | None
    overlap: Overlap | None
    catchup: Catchup | None
    catchup_window: timedelta | None
    jitter: timedelta | None
    on_exhausted: OnExhausted | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Job(Value):
    """A job. `payload` is None in a list that was not asked for payloads.

    The lease fields and `run_id` are None unless a worker has claimed the job; `next_run_at` is None while it is
    paused, dead or ended.
    """

    job_id: str
    key: str | None
    name: str | None
    tags: tuple[str, ...]
    handler: str
    state: JobState
    schedule: Schedule | None = None
    run_at: Instant | None = None
    payload: Any = None
    next_run_at: Instant | None
    scheduled_for: Instant
    attempt: int
    slot: int
    lease_owner: str | None
    lease_until: Instant | None
    lease_generation: int | None
    run_id: str | None
    pause_reason: str | None
    paused_by: str | None
    dead_reason: str | None
    retry: Retry
    timeout: Duration | None
    alert_after_late: Duration | None
    alert_if_no_success_for: Duration | None
    overlap: Overlap
    catchup: Catchup
    catchup_window: Duration
    jitter: Duration
    on_exhausted: OnExhausted
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, kw_only=True, slots=True)
class CreatedJob(Job):
    """A job that was created, kept or replaced, and when it will run next: at most ten instants.

    `created`: False where its key had been there already.
    """

    next_runs: tuple[Instant, ...]
    created: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchResult(Value):
    """What became of one job of a batch. Where it was refused `error` says why, and it has no id."""

    index: int
    status: int
    job_id: str | None = None
    next_run_at: Instant | None = None
    error: Refusal | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Redriven(Value):
    """How many dead jobs run again, and when the last of them is due; None where there were none."""

    count: int
    last_at: Instant | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoppingRun(Value):
    """The worker that was asked to stop a run."""

    run_id: str
    worker_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation(Value):
    """Why a job has not run yet, at `taken_at`.

    `code` is for programs, `sentence` for people; `fields` are what the sentence is made of, by their names and in
    their form on the wire.
    """

    job_id: str
    state: JobState
    code: str
    sentence: str
    fields: Mapping[str, Any]
    taken_at: Instant
