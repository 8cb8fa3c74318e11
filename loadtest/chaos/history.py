"""What a chaos run saw: the database's own record of every row, the sink's of every run, the callers' of every call.

Invariant: `versions` is authoritative. A trigger wrote it within the transactions that changed the rows, so a job's
versions are totally ordered and no worker is trusted. Everything else is evidence to be held against it.

All instants are seconds since the Unix epoch on the database's clock (the sink runs on the same host as the database;
its offset is measured and part of the Settings' tolerance). Where that clock was stepped (`steps`), what has
happened is told as if it had not been; what is for an instant (a tick, `scheduled_for`) is held against what it said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

ENDED = frozenset({"done", "cancelled"})
"""States that nothing follows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """A job's row after one change. `seq` orders the changes; a delete shows the row as it was."""

    seq: int
    at: float
    job: str
    change: Literal["insert", "update", "delete"]
    state: str
    generation: int
    owner: str | None = None
    lease_until: float | None = None
    next_run_at: float = 0.0
    scheduled_for: float = 0.0
    cause: str = "schedule"
    attempt: int = 0
    slot: int = 0
    writer: str | None = None
    """Who made the change, as its connection is named: a worker's id, perhaps with `/renew`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A row of `runs`."""

    job: str
    generation: int
    claimed_at: float
    finished_at: float
    attempt: int
    scheduled_for: float
    cause: str
    worker: str
    outcome: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Skip:
    """A row of `skips`: `count` ticks from `first` to `last`."""

    job: str
    first: float
    last: float
    count: int
    reason: str
    decided_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A run as the sink saw it. `end` None: the sink never heard of its end."""

    job: str
    generation: int
    scheduled_for: float
    attempt: int
    worker: str
    begin: float
    end: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call of the API. `outcome` "info": nobody knows whether it was done."""

    kind: Literal["create", "cancel"]
    invoked: float
    ended: float
    outcome: Literal["ok", "fail", "info"]
    status: int | None = None
    job: str | None = None
    key: str | None = None
    """The job's business key, where one was given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assigned:
    """An assignment as it was published: who owns which slots (inclusive), for the handlers of one group."""

    at: float
    epoch: int
    term: int
    group: str
    arcs: tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What a nemesis did, to whom, from when until its effects must be over. `name` as in faults.md §9: "N1"."""

    name: str
    target: str
    begin: float
    end: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """From `at` on the database's clock is `offset` ahead of what it would be without any step. `seq`: the newest
    change that was noted by then, or a moment later."""

    at: float
    offset: float
    seq: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What was asked for: a one-off (`ticks` empty), or the ticks of the reference enumerator up to the end of the
    run."""

    job: str
    created_at: float
    ticks: tuple[float, ...] = ()
    run_at: float | None = None
    max_attempts: int = 5
    overlap: str = "skip"
    catchup: str = "latest"


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """What a server said that was killed at `until`, and whose replica, which took its place, had not followed all of
    it: the beginning they have in common, and what was lost."""

    until: float
    jobs: Mapping[str, Job] = field(default_factory=dict)
    versions: Sequence[Version] = ()
    runs: Sequence[Run] = ()
    skips: Sequence[Skip] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The cluster's promises, in seconds."""

    lease: float = 6.0
    poll: float = 0.5
    session: float = 4.0
    clock_tolerance: float = 0.005
    bound: float = 30.0
    """A tick that was due this long before the end must have been decided."""
    slots: int = 4096


@dataclass(kw_only=True)
class History:
    """One run, whole."""

    settings: Settings = field(default_factory=Settings)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    versions: Sequence[Version] = ()
    runs: Sequence[Run] = ()
    skips: Sequence[Skip] = ()
    hits: Sequence[Hit] = ()
    calls: Sequence[Call] = ()
    assignments: Sequence[Assigned] = ()
    faults: Sequence[Fault] = ()
    abandoned: Sequence[Branch] = ()
    """Oldest first. Empty where no acknowledged commit can have been lost; `versions`, `runs`, `skips` and `jobs` are
    those of the server that is left."""
    steps: Sequence[Step] = ()
    """Of the database's clock, in order."""
    ended_at: float = 0.0
    """When the database was read at the end, all faults healed."""

    @cached_property
    def versions_of(self) -> Mapping[str, list[Version]]:
        """By job, in order."""
        found: dict[str, list[Version]] = defaultdict(list)
        for version in sorted(self.versions, key=lambda version: version.seq):
            found[version.job].append(version)
        return found

    @cached_property
    def runs_of(self) -> Mapping[str, list[Run]]:
        """By job, oldest claim first."""
        found: dict[str, list[Run]] = defaultdict(list)
        for run in sorted(self.runs, key=lambda run: (run.claimed_at, run.generation)):
            found[run.job].append(run)
        return found

    @cached_property
    def hits_of(self) -> Mapping[str, list[Hit]]:
        """By job, by begin."""
        found: dict[str, list[Hit]] = defaultdict(list)
        for hit in sorted(self.hits, key=lambda hit: hit.begin):
            found[hit.job].append(hit)
        return found

    @cached_property
    def skips_of(self) -> Mapping[str, list[Skip]]:
        """By job, by their first tick."""
        found: dict[str, list[Skip]] = defaultdict(list)
        for skip in sorted(self.skips, key=lambda skip: skip.first):
            found[skip.job].append(skip)
        return found

    def latest_said(self, begin: float, end: float) -> float:
        """The latest that the database's clock said between `begin` and `end`."""
        return max(min(until, end) + offset for since, until, offset in self._spans if since <= end and until >= begin)

    def when_said(self, instant: float) -> list[float]:
        """When the database's clock said that, or stepped over it. It may have said it twice."""
        found = []
        before = 0.0
        for since, until, offset in self._spans:
            if since + before < instant < since + offset:
                found.append(since)
            if since <= instant - offset <= until:
                found.append(instant - offset)
            before = offset
        return found

    @property
    def _spans(self) -> list[tuple[float, float, float]]:
        """From when until when the database's clock was how far ahead."""
        begins = [(float("-inf"), 0.0), *((step.at, step.offset) for step in self.steps)]
        ends = [*(step.at for step in self.steps), float("inf")]
        return [(since, until, offset) for (since, offset), until in zip(begins, ends, strict=True)]

    def touching(self, worker: str, begin: float, end: float) -> list[Fault]:
        """The faults that can stop or cut off this worker and overlap [begin, end]."""
        return [
            fault
            for fault in self.faults
            if fault.begin <= end
            and fault.end >= begin
            and (fault.target in ("*", worker) or worker.startswith(fault.target))
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """An invariant that does not hold, why, and the shortest part of the history that shows it."""

    invariant: str
    job: str | None
    message: str
    evidence: tuple[object, ...] = ()
