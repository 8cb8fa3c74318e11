"""What the worker's statements take and answer."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ringcron.errors import LeaseLost
from ringcron.lifecycle import Completion
from ringcron.models import Arc, Claim, RunOutcome
from ringcron.records import record


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The first due row of a handler in an arc, `wait_seconds` from now (negative: overdue by that much)."""

    handler: str
    arc: Arc
    wait_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Peek:
    """What a worker may look forward to, soonest first.

    `heads` are of its own arcs, `ring` of the whole ring. `solo_wait_seconds`: until the first quarantined job is due.
    `lapse_seconds`: until the earliest lease of anybody lapses. `beyond`: a row is due now that lies outside the bounds
    in which arcs are looked into.
    """

    heads: tuple[Head, ...]
    ring: tuple[Head, ...]
    solo_wait_seconds: float | None
    lapse_seconds: float | None
    answered_at: float  # elapsed seconds
    beyond: bool = False


@record(frozen=True, kw_only=True, slots=True, eq=False)
class EndedRun:
    """A run that has ended, and what becomes of its job."""

    claim: Claim
    revision: int
    outcome: RunOutcome
    error: str | None
    result: bytes | None
    started_at: float  # elapsed seconds
    finished_at: float
    completion: Completion
    retry_after_seconds: float | None = None
    dead: bool = False  # the handler said that no further attempt can help
    failures: int = 0  # how often writing it by itself has failed
    bare: bool = False  # already stripped of what PostgreSQL might refuse


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """How a batch of completions went. `moved`: the definition changed meanwhile; read and decide again."""

    written: tuple[EndedRun, ...]
    moved: tuple[EndedRun, ...]
    refused: tuple[tuple[EndedRun, LeaseLost], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Renewed:
    """The leases that were renewed: `(job id, generation)` → whether a cancel of the run was requested."""

    held: dict[tuple[UUID, int], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reaped:
    """A lapsed lease that was taken back. `convicted`: the job is dead now."""

    job_id: UUID
    lease_generation: int
    lease_owner: str
    convicted: bool
