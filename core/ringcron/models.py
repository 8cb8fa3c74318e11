"""The values that travel between the store, the API and the workers.

All are frozen (those that every run is made of to mypy only: ringcron.records) and keyword-only. Instants are aware UTC
datetimes; durations carry their unit in the name. The enums equal the text in SQL and on the wire. PostgreSQL is
authoritative for every one of them; these are copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from ringcron.records import record

PARKED: Final = datetime(9500, 1, 1, tzinfo=UTC)
"""next_run_at of `paused` and `dead` rows: they lie in the far partition, so that no day waits for them."""
EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
"""Instants a caller may name lie in [EARLIEST, LATEST)."""


class JobState(StrEnum):
    """Where a job is in its life (contract.md §5)."""

    DUE = "due"  # waiting for next_run_at
    CLAIMED = "claimed"  # a worker holds its lease
    PAUSED = "paused"  # parked until resumed
    DONE = "done"  # nothing left to run
    CANCELLED = "cancelled"  # by DELETE
    DEAD = "dead"  # parked until a person redrives or deletes it


class RunOutcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"  # the lease lapsed and the owner never came back; spends an attempt
    INTERRUPTED = "interrupted"  # handed back (drain, or trust ended while the owner lives); spends nothing


class Cause(StrEnum):
    """Why an occurrence is run."""

    SCHEDULE = "schedule"
    CATCHUP = "catchup"
    BUFFER = "buffer"
    MANUAL = "manual"
    REDRIVE = "redrive"


class SkipReason(StrEnum):
    """Why ticks were deliberately not run."""

    OVERLAP = "overlap"
    MISSED = "missed"
    PAUSED = "paused"
    DEAD = "dead"
    RESCHEDULED = "rescheduled"


class Overlap(StrEnum):
    """What happens to ticks that pass while an occurrence is going."""

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_OTHER = "cancel_other"


class Catchup(StrEnum):
    """What happens to ticks that were missed."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


class OnExhausted(StrEnum):
    """What a recurring job does when an occurrence has used up its attempts."""

    CONTINUE = "continue"
    DEAD = "dead"


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """Back-off between attempts: min(max, min × multiplier^(n−1)) × (0.5 + 0.5 × random) seconds after attempt n."""

    max_attempts: int = 5
    min_backoff_seconds: float = 5.0
    max_backoff_seconds: float = 3600.0
    multiplier: float = 2.0
    max_lost: int = 3


@record(frozen=True, kw_only=True, slots=True)
class Definition:
    """What a user scheduled. Exactly one of `schedule` and `run_at` is set.

    `schedule` is the JSON document as stored: {"cron", "timezone"} or {"every", "anchor"}, plus
    "startAt", "endAt", "maxRuns" where given; `ringcron.schedule.parse_schedule` reads it.
    """

    handler: str
    payload: Any
    schedule: Mapping[str, Any] | None = None
    run_at: datetime | None = None
    key: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout_seconds: float | None = None
    overlap: Overlap = Overlap.SKIP
    catchup: Catchup = Catchup.LATEST
    catchup_window_seconds: float = 365 * 86400.0
    jitter_seconds: float = 0.0
    on_exhausted: OnExhausted = OnExhausted.CONTINUE
    tzdata: str | None = None
    alert_after_late_seconds: float | None = None
    alert_if_no_success_seconds: float | None = None
    traceparent: str | None = None
    """The trace of the call that created or last triggered the job; None also where a job is read for people."""
    tracestate: str | None = None
    """What came beside it."""

    @property
    def is_watched(self) -> bool:
        """Whether it has an alert of its own."""
        return self.alert_after_late_seconds is not None or self.alert_if_no_success_seconds is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One row of `jobs`, as the API shows it. `payload` inside `definition` is None where it was not asked for."""

    id: UUID
    slot: int
    state: JobState
    definition: Definition
    next_run_at: datetime | None  # None when parked or ended
    scheduled_for: datetime
    cause: Cause
    attempt: int
    lost: int
    occurrences: int
    decided_until: datetime
    kept: tuple[datetime, ...] | None
    lease_owner: str | None
    lease_until: datetime | None
    lease_generation: int
    claimed_at: datetime | None
    cancel_requested: bool
    after_current: Mapping[str, Any] | None
    revision: int
    pause_reason: str | None
    paused_by: str | None
    dead_reason: str | None
    created_at: datetime
    updated_at: datetime
    begun: bool = False
    """Known under the row's lock only: a run of the occurrence was handed back, though no attempt of it counts."""


QUARANTINE_LOSSES: Final = 2
"""A job whose worker was lost so often in a row is claimed alone from then on. The first loss is mostly a machine's: it
convicts nobody, and the jobs of a whole worker run again side by side. (`lost > 1` in the statements and the index.)"""


@record(frozen=True, kw_only=True, slots=True)
class Claim:
    """The token of one claim: what every write of its run must carry, and the narrow row it came with."""

    id: UUID
    next_run_at: datetime
    lease_generation: int
    handler: str
    attempt: int
    scheduled_for: datetime
    cause: Cause
    claimed_at: datetime
    decided_until: datetime
    lost: int
    inline: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)
    """Its definition, undecoded, where that is small enough to have come with the claim (store.claimed)."""
    run_id: str = field(init=False, compare=False, repr=False)
    """`<jobId>.<leaseGeneration>`. Made once: everything that is kept by run is kept under it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "run_id", f"{self.id}.{self.lease_generation}")

    @property
    def solo(self) -> bool:
        """Whether it was claimed alone, out of quarantine."""
        return self.lost >= QUARANTINE_LOSSES


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One row of `runs`, or the run in progress read from the job row (finished_at and outcome None)."""

    job_id: UUID
    lease_generation: int
    attempt: int
    scheduled_for: datetime
    cause: Cause
    worker_id: str
    started_at: datetime
    finished_at: datetime | None
    outcome: RunOutcome | None
    error: str | None
    result: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Skip:
    """Ticks deliberately not run: `count` ticks of the schedule from `first` to `last`, both included."""

    first: datetime
    last: datetime
    count: int
    reason: SkipReason


@dataclass(frozen=True, kw_only=True, slots=True)
class Arc:
    """A contiguous run of slots, both ends included; never wraps past 4095."""

    lo: int
    hi: int

    def __len__(self) -> int:
        return self.hi - self.lo + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """The arcs that one worker claims on one ring, and the handlers whose jobs lie on that ring."""

    handlers: tuple[str, ...]
    arcs: tuple[Arc, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """What a worker may claim now.

    `proven` is False while the worker cannot show that it owns `slices` (cut off from ZooKeeper, or not assigned yet):
    it then claims them with the helper's delay.
    """

    epoch: int
    slices: tuple[Slice, ...]
    proven: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerReport:
    """What a worker says of itself, in the unlogged table `workers` (for people; nothing decides by it)."""

    worker_id: str
    name: str
    capacity: int
    running: int
    handlers: tuple[str, ...]
    version: str
    tzdata: str
    epoch: int
    draining: bool
    slices: tuple[Slice, ...]
    report_seconds: float = 5.0
    """How often it means to report."""
    age_seconds: float = 0.0
    """How long ago it last did, where this is read from the database."""
    drain_asked_by: str | None = None
    mean_seconds: Mapping[str, float] = field(default_factory=dict)
    """How long its runs lasted lately, by handler."""

    @property
    def silent(self) -> bool:
        """Whether it has missed a report and more: it may be gone, and what it held may have no owner."""
        return self.age_seconds > 2 * self.report_seconds + 1
