"""The table of jobs, and each statement of a worker as its SQL file has it.

Invariant: what a statement of `sql/ringcron_sql/queries` does to a row and answers, its function here does, no more and
no less (tests/integration/test_simulated_statements.py). A statement is carried out whole, at one instant. Every change
is shown to the referee as (row before, row after, statement).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol
from uuid import UUID

import orjson

from ringcron.models import PARKED
from ringcron.slots import SLOT_COUNT
from ringcron_sql import query

_FROM_SCHEDULE: Final = frozenset({"schedule", "catchup", "buffer"})
_STEP: Final = timedelta(seconds=1)

Parameters = Mapping[str, Any]
Rows = list[tuple[Any, ...]]


@dataclass(slots=True, kw_only=True)
class Row:
    """One row of `jobs`: the columns that a worker's statements touch."""

    id: UUID
    slot: int
    handler: str
    next_run_at: datetime
    scheduled_for: datetime
    decided_until: datetime
    payload: str = "null"
    inline: bool = True
    """Whether the payload is small enough to come with a claim."""
    schedule: str | None = None
    run_at: datetime | None = None
    max_attempts: int = 5
    min_backoff: float = 0.2
    max_backoff: float = 2.0
    multiplier: float = 2.0
    max_lost: int = 3
    timeout: float | None = None
    overlap: str = "skip"
    catchup: str = "latest"
    catchup_window: float = 365 * 86400.0
    jitter: float = 0.0
    on_exhausted: str = "continue"
    state: str = "due"
    cause: str = "schedule"
    attempt: int = 0
    lost: int = 0
    occurrences: int = 0
    kept: tuple[datetime, ...] | None = None
    lease_owner: str | None = None
    lease_until: datetime | None = None
    lease_generation: int = 0
    claimed_at: datetime | None = None
    cancel_requested: bool = False
    revision: int = 1
    dead_reason: str | None = None


@dataclass(slots=True, kw_only=True, frozen=True)
class RunRow:
    """One row of `runs`."""

    job_id: UUID
    lease_generation: int
    worker_id: str
    attempt: int
    scheduled_for: datetime
    cause: str
    outcome: str


@dataclass(slots=True, kw_only=True, frozen=True)
class SkipRow:
    """One row of `skips`."""

    job_id: UUID
    first: datetime
    last: datetime
    count: int
    reason: str


class Referee(Protocol):
    """Who watches every change."""

    def changed(self, before: Row | None, after: Row, statement: str, owner: str | None) -> None: ...


@dataclass(slots=True)
class Database:
    """`now` is the database's clock."""

    now: Callable[[], datetime]
    referee: Referee
    jobs: dict[UUID, Row] = field(default_factory=dict)
    runs: list[RunRow] = field(default_factory=list)
    skips: list[SkipRow] = field(default_factory=list)

    def insert(self, row: Row) -> None:
        self.jobs[row.id] = row
        self.referee.changed(None, row, "insert", None)

    def execute(self, statement: str, parameters: Parameters | None) -> Rows:
        """Carry a statement out; `statement` is the text of a query file."""
        name = _NAMES.get(statement)
        if name is None:
            raise AssertionError(f"the simulation does not know this statement: {statement[:200]}")
        rows: Rows = getattr(self, name)(parameters or {})
        return rows

    def fenced(self, id: UUID, generation: int, owner: str, next_run_at: datetime) -> Row | None:
        """The row, if the fence lets a write of this claim pass."""
        row = self.jobs.get(id)
        if row is None or row.state != "claimed" or row.lease_generation != generation:
            return None
        return row if row.lease_owner == owner and row.next_run_at == next_run_at else None

    def claim(self, p: Parameters) -> Rows:
        now = self.now()
        latest = now - timedelta(seconds=p["overdue"])
        due = [
            row
            for row in self.jobs.values()
            if row.state == "due"
            and row.next_run_at <= latest
            and p["lo"] <= row.slot <= p["hi"]
            and (row.lost > 1) == p["solo"]
            and row.handler in p["handlers"]
            and p["from_at"] <= row.next_run_at < p["until_at"]
        ]
        due.sort(key=lambda row: row.next_run_at)
        answer: Rows = []
        for row in due[: p["batch"]]:
            first = row.attempt == 0
            after = dataclasses.replace(
                row,
                state="claimed",
                lease_owner=p["owner"],
                claimed_at=now,
                lease_until=now + timedelta(seconds=p["lease"]),
                lease_generation=row.lease_generation + 1,
                attempt=row.attempt + 1,
                occurrences=row.occurrences + (first and row.cause in _FROM_SCHEDULE),
                decided_until=max(row.decided_until, now) if first and row.cause == "schedule" else row.decided_until,
            )
            self._change(row, after, "claim", p["owner"])
            answer.append(
                (
                    after.id, after.next_run_at, after.lease_generation, after.handler, after.attempt,
                    after.scheduled_for, after.cause, now, after.decided_until, after.lost,
                    *_definition(after, inline=after.inline),
                )
            )  # fmt: skip
        return answer

    def peek(self, p: Parameters) -> Rows:
        now = self.now()
        near = [row for row in self.jobs.values() if p["from_at"] <= row.next_run_at < p["until_at"]]
        lapse = min((row.lease_until for row in near if row.lease_until is not None), default=None)
        due = [row for row in near if row.state == "due"]
        wanted = p["wanted"]
        solo = min((row.next_run_at for row in due if row.lost > 1 and row.handler in wanted), default=None)
        first_due = [
            min((row.next_run_at for row in due if row.lost <= 1 and row.handler == handler), default=None)
            for handler in wanted
        ]
        beyond = any(
            first is not None and first <= now and not p["arcs_from_at"] <= first < p["arcs_until_at"]
            for first in (solo, *first_due)
        )
        head = (now, _seconds(lapse, now), _seconds(solo, now), beyond)
        horizon = now + timedelta(seconds=p["horizon"])
        answer: Rows = []
        for rank, handler, lo, hi in zip(p["ranks"], p["handlers"], p["los"], p["his"], strict=True):
            whole = lo == 0 and hi == SLOT_COUNT - 1
            first = min(
                (
                    row.next_run_at
                    for row in due
                    if row.lost <= 1
                    and lo <= row.slot <= hi
                    and row.handler == handler
                    and (whole or p["arcs_from_at"] <= row.next_run_at < min(p["arcs_until_at"], horizon))
                ),
                default=None,
            )
            if first is not None:
                answer.append((*head, rank, _seconds(first, now)))
        return answer or [(*head, None, None)]

    def read_claimed(self, p: Parameters) -> Rows:
        answer: Rows = []
        for id, next_run_at in zip(p["ids"], p["next_run_ats"], strict=True):
            row = self.jobs.get(id)
            if row is not None and row.next_run_at == next_run_at and row.lease_owner == p["owner"]:
                answer.append((row.id, row.lease_generation, *_definition(row, inline=True)))
        return answer

    def settle_claims(self, p: Parameters) -> Rows:
        now = self.now()
        answer: Rows = []
        for d in orjson.loads(p["rows"]):
            id, generation = UUID(d["id"]), d["lease_generation"]
            row = self.fenced(id, generation, p["owner"], _instant(d["next_run_at"]))
            if row is None:
                continue
            for_, cause = _instant(d["scheduled_for"]), d["cause"]
            if (row.scheduled_for, row.cause) != (_instant(d["old_scheduled_for"]), d["old_cause"]):
                if not d["release"] and (row.scheduled_for, row.cause) == (for_, cause):
                    answer.append((id, generation))
                continue
            after = dataclasses.replace(row, scheduled_for=for_, cause=cause, kept=_instants(d["kept"]))
            if d["release"]:
                after.state = "done" if d["done"] else "due"
                after.next_run_at = now if d["done"] else max(_instant(d["following"]), now)
                after.attempt, after.occurrences = 0, max(row.occurrences - 1, 0)
                after.cancel_requested = False
                after.lease_owner = after.lease_until = after.claimed_at = None
            elif d["restart"]:
                assert row.claimed_at is not None
                after.attempt, after.occurrences, after.decided_until = 1, row.occurrences + 1, row.claimed_at
            self._skip(id, d)
            self._change(row, after, "settle", p["owner"])
            answer.append((id, generation))
        return answer

    def renew_leases(self, p: Parameters) -> Rows:
        now = self.now()
        answer: Rows = []
        for id, next_run_at, generation in zip(p["ids"], p["next_run_ats"], p["generations"], strict=True):
            row = self.fenced(id, generation, p["owner"], next_run_at)
            if row is not None:
                after = dataclasses.replace(row, lease_until=now + timedelta(seconds=p["lease"]))
                self._change(row, after, "renew", p["owner"])
                answer.append((id, generation, row.cancel_requested, now))
        return answer

    def complete_runs(self, p: Parameters) -> Rows:
        now = self.now()
        answer: Rows = []
        for e in orjson.loads(p["rows"]):
            id, generation = UUID(e["id"]), e["lease_generation"]
            row = self.fenced(id, generation, p["owner"], _instant(e["next_run_at"]))
            if row is None:
                continue
            answer.append((id, generation, e["revision"] == row.revision))
            if e["revision"] != row.revision:
                continue
            state = e["state"]
            at = now
            if state == "due":
                at = now + timedelta(seconds=e.get("delay") or 0.0)
                if e.get("following") is not None:
                    at = max(at, _instant(e["following"]))
            elif state in ("paused", "dead"):
                at = PARKED
            after = dataclasses.replace(
                row,
                state=state,
                next_run_at=at,
                scheduled_for=_instant(e["scheduled_for"]) if e.get("scheduled_for") else row.scheduled_for,
                cause=e.get("cause") or row.cause,
                attempt=row.attempt if e.get("attempt") is None else e["attempt"],
                lost=0,
                occurrences=row.occurrences - bool(e.get("give_back")),
                decided_until=_instant(e["decided_until"]) if e.get("decided_until") else row.decided_until,
                kept=_instants(e.get("kept")),
                dead_reason=e.get("dead_reason"),
                cancel_requested=False,
                lease_owner=None,
                lease_until=None,
                claimed_at=None,
            )
            self._skip(id, e)
            # The generation of the writer, as in the file: the referee compares it with the row's.
            self._run(row, generation, p["owner"], e["outcome"])
            self._change(row, after, f"complete {generation}", p["owner"])
        return answer

    def reap_leases(self, p: Parameters) -> Rows:
        now = self.now()
        if not p["expected_now"] - _STEP <= now <= p["expected_now"] + _STEP:
            return []
        lapsed = [
            row
            for row in self.jobs.values()
            if row.lease_until is not None and row.lease_until < now and p["from_at"] <= row.next_run_at < p["until_at"]
        ]
        lapsed.sort(key=lambda row: row.lease_until or now)
        answer: Rows = []
        for row in lapsed[:100]:
            becomes = "due"
            if row.cancel_requested and row.schedule is None:
                becomes = "cancelled"
            elif row.lost > 1 and row.lost + 1 >= row.max_lost:
                becomes = "dead"
            after = dataclasses.replace(
                row,
                state=becomes,
                next_run_at=PARKED if becomes == "dead" else now,
                lost=row.lost + 1,
                dead_reason="lost too often" if becomes == "dead" else None,
                lease_owner=None,
                lease_until=None,
                claimed_at=None,
            )
            owner = row.lease_owner or ""
            self._run(row, row.lease_generation, owner, "lost")
            self._change(row, after, "reap", owner)
            answer.append((row.id, row.lease_generation, owner, becomes == "dead"))
        return answer

    def release_unknown_claims(self, p: Parameters) -> Rows:
        known = set(zip(p["ids"], p["generations"], strict=True))
        answer: Rows = []
        for row in list(self.jobs.values()):
            if row.state != "claimed" or row.lease_owner != p["owner"] or (row.id, row.lease_generation) in known:
                continue
            if row.claimed_at is None or row.claimed_at > p["claimed_by"]:
                continue
            given_back = row.attempt == 1 and row.cause in _FROM_SCHEDULE
            after = dataclasses.replace(
                row,
                state="due",
                attempt=max(row.attempt - 1, 0),
                occurrences=max(row.occurrences - given_back, 0),
                lease_owner=None,
                lease_until=None,
                claimed_at=None,
            )
            self._change(row, after, "release", p["owner"])
            answer.append((row.id,))
        return answer

    def find_landed(self, p: Parameters) -> Rows:
        answer: Rows = []
        for id, generation in zip(p["ids"], p["generations"], strict=True):
            landed = any(
                run.job_id == id
                and run.lease_generation == generation
                and run.worker_id == p["owner"]
                and run.outcome != "lost"
                for run in self.runs
            )
            row = self.jobs.get(id)
            answer.append((id, generation, landed, None if row is None else row.lease_generation))
        return answer

    def read_clock(self, _: Parameters) -> Rows:
        return [(self.now(),)]

    def report_worker(self, _: Parameters) -> Rows:
        """Nobody asks for a drain here but by the process's own signal."""
        return [(None,)]

    def forget_worker(self, _: Parameters) -> Rows:
        return []

    def _change(self, before: Row, after: Row, statement: str, owner: str) -> None:
        self.jobs[before.id] = after
        self.referee.changed(before, after, statement, owner)

    def _run(self, row: Row, generation: int, owner: str, outcome: str) -> None:
        self.runs.append(
            RunRow(
                job_id=row.id,
                lease_generation=generation,
                worker_id=owner,
                attempt=row.attempt,
                scheduled_for=row.scheduled_for,
                cause=row.cause,
                outcome=outcome,
            )
        )

    def _skip(self, id: UUID, fields: Mapping[str, Any]) -> None:
        if fields.get("skip_count"):
            self.skips.append(
                SkipRow(
                    job_id=id,
                    first=_instant(fields["skip_first"]),
                    last=_instant(fields["skip_last"]),
                    count=fields["skip_count"],
                    reason=fields["skip_reason"],
                )
            )


def _definition(row: Row, *, inline: bool) -> tuple[Any, ...]:
    """The columns of a definition; the payload is left out where it is large."""
    values = (
        row.max_attempts, row.min_backoff, row.max_backoff, row.multiplier, row.max_lost, row.timeout, row.overlap,
        row.catchup, row.catchup_window, row.jitter, row.on_exhausted,
    )  # fmt: skip
    policies = ("" if value is None else str(value) for value in values)
    return (
        row.payload if inline else None, row.schedule, row.run_at, f"({','.join(policies)})", row.occurrences,
        None if row.kept is None else list(row.kept), row.cancel_requested, None, row.revision, None, None,
    )  # fmt: skip


def _seconds(instant: datetime | None, now: datetime) -> float | None:
    return None if instant is None else (instant - now).total_seconds()


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _instants(texts: Sequence[str] | None) -> tuple[datetime, ...] | None:
    return None if texts is None else tuple(_instant(text) for text in texts)


STATEMENTS: Final = (
    "claim", "peek", "read_claimed", "settle_claims", "renew_leases", "complete_runs", "reap_leases",
    "release_unknown_claims", "find_landed", "read_clock", "report_worker", "forget_worker",
)  # fmt: skip
"""Every statement of ringcron.store.worker."""
_NAMES: Final = {query(name): name for name in STATEMENTS}
