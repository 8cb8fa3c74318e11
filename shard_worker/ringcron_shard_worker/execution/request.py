"""What the worker asks for and gets back: one request, one control and one result per run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from ringcron.models import RunOutcome
from ringcron.records import record
from ringcron_shard_worker.traces import RunTrace


@record(frozen=True, kw_only=True, slots=True)
class RunRequest:
    """One run. `solo`: a quarantined job, which runs in a process of its own even where its handler is async."""

    job_id: UUID
    run_id: str
    handler: str
    payload: Any
    scheduled_for: datetime
    attempt: int
    lease_generation: int
    timeout_seconds: float | None
    solo: bool
    trace: RunTrace | None = None

    @property
    def traceparent(self) -> str | None:
        """What the handler may hand on."""
        return None if self.trace is None else self.trace.traceparent

    @property
    def tracestate(self) -> str | None:
        """What the handler may hand on beside it."""
        return None if self.trace is None else self.trace.tracestate


class StopReason(StrEnum):
    """Why the worker wants a run to stop. Cancelled on request it ends as `cancelled`, else as `interrupted`."""

    LEASE_LOST = "its lease was lost"
    TRUST_ENDED = "the worker could no longer prove its lease"
    DRAINED = "the worker is draining"
    CANCEL_REQUESTED = "it was cancelled on request"


class RunControl:
    """The worker's hand on one run; to be used in the event loop's thread.

    `trust_until` is in seconds of Clock.elapsed.
    """

    __slots__ = ("_listener", "stop_reason", "trust_until")

    def __init__(self, trust_until: float) -> None:
        self.trust_until = trust_until
        self.stop_reason: StopReason | None = None
        self._listener: Callable[[], object] | None = None

    def extend(self, trust_until: float) -> None:
        """The lease was renewed: move the end of trust, and with it whatever would kill the run."""
        self.trust_until = trust_until
        self._notify()

    def stop(self, reason: StopReason) -> None:
        """Ask the run to stop. The first reason counts, later ones do nothing."""
        if self.stop_reason is None:
            self.stop_reason = reason
            self._notify()

    def listen(self, listener: Callable[[], object] | None) -> None:
        """Call `listener` after each change; there is one listener at most."""
        self._listener = listener

    def _notify(self) -> None:
        if self._listener is not None:
            self._listener()


@record(frozen=True, kw_only=True, slots=True)
class RunResult:
    """How a run ended. `result` is JSON text of at most RESULT_LIMIT bytes, `error` at most ERROR_LIMIT characters.

    `retry_after_seconds` and `dead` are what a failed handler asked for. `trouble_seconds`: nothing should be claimed
    here for so long, since the run could not even be begun.
    """

    outcome: RunOutcome
    error: str | None = None
    result: bytes | None = None
    retry_after_seconds: float | None = None
    dead: bool = False
    trouble_seconds: float = 0.0
