"""Whose a key is, and what that makes of the creates that name it.

Invariant: at most one job that is neither cancelled nor gone holds a key. A transaction locks the rows of all its keys
first, in one statement, in the order of the keys; then, in the order of their ids, the jobs that it may replace; only
then it looks, and reads the clock. So of many creates with one key each sees what the one before it did, and no two
transactions wait for each other both ways.

Creates of one transaction with the same key are decided in their order by `decide`, which is pure. Only what they come
to is written: one new row or one replacement, however many they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import structlog
from psycopg.rows import dict_row

from ringcron.errors import JobAlreadyClaimed, KeyExists, RingcronError, ScheduleError
from ringcron.models import Cause, Job, JobState, Skip, SkipReason
from ringcron.schedule import parse_schedule
from ringcron.store.connection import Connection
from ringcron.store.creating import (
    Created,
    Creation,
    NewJob,
    OnConflict,
    Outcome,
    Stored,
    insert_many,
    read_job,
    record_of,
)
from ringcron.store.rows import WITHOUT_NEXT_RUN, document_of
from ringcron.undecided import given_up, undecided_since, waiting_ticks, waits_unattempted
from ringcron_sql import query

_log = structlog.get_logger(__name__)
Firsts = dict[tuple[int, datetime], datetime | None]
"""The first ticks that were looked for already: by the definition's `id`, which a batch shares, and the instant."""
_PASSED: Mapping[JobState, SkipReason] = {JobState.PAUSED: SkipReason.PAUSED, JobState.DEAD: SkipReason.DEAD}


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """The job that holds a key, as its row says. `claimed`: a worker has it, by a lease that has not lapsed."""

    id: UUID
    state: JobState
    next_run_at: datetime
    schedule: Mapping[str, Any] | None
    scheduled_for: datetime
    cause: Cause
    attempt: int
    kept: tuple[datetime, ...]
    decided_until: datetime
    updated_at: datetime
    claimed: bool
    lease_owner: str | None
    lease_until: datetime | None
    lease_generation: int
    read_at: datetime
    """The database's clock after its row was locked, where it is to be replaced."""


class Decision(NamedTuple):
    """What creates with one key come to: an outcome for each, and the job to be inserted or to become the holder's."""

    outcomes: list[Outcome]
    new: Creation | None
    replacing: Creation | None


class Settled(NamedTuple):
    """What became of creates with keys, in their order, and the jobs that their caller is to insert."""

    outcomes: list[Outcome]
    new: list[Creation]


def decide(creates: Sequence[Creation], holder: Holder | None) -> Decision:
    """What creates with one key come to, one after the other. `holder` None: the key is free."""
    outcomes: list[Outcome] = []
    written: Creation | None = None
    job_id, next_run_at = (None, None) if holder is None else (holder.id, _shown(holder))
    for create in creates:
        if job_id is None:
            written, job_id, next_run_at = create, create.id, create.next_run_at
            outcomes.append(Stored(Created.CREATED, job_id, next_run_at))
        elif create.on_conflict is OnConflict.KEEP:
            outcomes.append(Stored(Created.KEPT, job_id, next_run_at))
        elif create.on_conflict is OnConflict.ERROR:
            outcomes.append(KeyExists(create.key or "", job_id))
        elif holder is not None and holder.claimed:
            outcomes.append(_claimed(holder))
        else:
            written = create._replace(id=job_id)
            next_run_at = written.next_run_at
            outcomes.append(Stored(Created.REPLACED, job_id, next_run_at))
    return Decision(outcomes, *((written, None) if holder is None else (None, written)))


def _shown(holder: Holder) -> datetime | None:
    return None if holder.state in WITHOUT_NEXT_RUN else holder.next_run_at


def _claimed(holder: Holder) -> JobAlreadyClaimed:
    return JobAlreadyClaimed(
        holder.id,
        lease_owner=holder.lease_owner or "",
        lease_until=holder.lease_until,
        lease_generation=holder.lease_generation,
    )


async def create(
    connection: Connection, new: NewJob, on_conflict: OnConflict, *, first_try: bool
) -> tuple[Created, Job]:
    """Store the job, or do with its key what `on_conflict` says. Raises KeyExists and JobAlreadyClaimed."""
    if new.definition.key is None:
        (job,) = await insert_many(connection, [new], first_try=first_try)
        return Created.CREATED, job
    async with connection.transaction():
        landed = set() if first_try else await find_landed(connection, [new.id])
        one = Creation.of(new, on_conflict)
        (outcome,), inserts = await settle_keys(connection, [one], landed=landed, first_try=first_try)
        if isinstance(outcome, RingcronError):
            raise outcome
        jobs = await insert_many(connection, [new], first_try=first_try) if inserts else []
        found = jobs[0] if jobs else await read_job(connection, outcome.job_id)
    assert found is not None
    return outcome.what, found


async def settle_keys(
    connection: Connection, creates: Sequence[Creation], *, landed: Collection[UUID], first_try: bool
) -> Settled:
    """Decide all these creates, which have keys, and do what is to be done to keys and to jobs that exist already.

    `landed`: the ids of creates that an earlier, unanswered try has stored. Inside a transaction of the caller's.
    """
    groups: dict[str, list[Creation]] = {}
    for one in creates:
        groups.setdefault(one.key or "", []).append(one)
    holders = await _hold(connection, {key: group for key, group in groups.items() if group[0].id not in landed})
    outcomes: dict[str, Iterator[Outcome]] = {}
    new: list[Creation] = []
    replacing: list[tuple[Holder, Creation]] = []
    firsts: Firsts = {}
    for key, group in groups.items():
        holder = holders.get(key)
        again = holder is not None and not first_try and _was_replaced(holder, group)
        if holder is not None:
            holder = replace(holder, claimed=holder.claimed and not again)
            group = replacing_at(group, holder.decided_until if again else holder.read_at, firsts)
        decision = decide(group, holder)
        outcomes[key] = iter(decision.outcomes)
        if decision.new is not None and group[0].id not in landed:
            new.append(decision.new)
        if holder is not None and decision.replacing is not None and not again:
            replacing.append((holder, decision.replacing))
    await _replace(connection, replacing)
    return Settled([next(outcomes[one.key or ""]) for one in creates], new)


def replacing_at(group: Sequence[Creation], now: datetime, firsts: Firsts) -> list[Creation]:
    """The creates with one key, what replaces its job decided at `now`: so no tick that a claim has taken meanwhile
    comes again. A schedule that has ended meanwhile keeps the tick that was ahead when it was asked for."""
    moved: list[Creation] = []
    for one in group:
        if one.on_conflict is not OnConflict.REPLACE:
            moved.append(one)
            continue
        first = one.scheduled_for
        if one.run_at is None and one.common.schedule is not None:
            known = id(one.common), now
            if known not in firsts:
                firsts[known] = parse_schedule(one.common.schedule).next_after(now)
            first = firsts[known] or first
        moved.append(one._replace(decided_at=now, scheduled_for=first))
    return moved


def _was_replaced(holder: Holder, group: Sequence[Creation]) -> bool:
    """Whether an earlier, unanswered try of these creates has replaced the holder's definition: by the instant."""
    return any(one.on_conflict is OnConflict.REPLACE and one.created_at == holder.updated_at for one in group)


async def _hold(connection: Connection, groups: Mapping[str, Sequence[Creation]]) -> dict[str, Holder]:
    """Lock the keys; who holds those that are not free. The free ones then belong to the first of their creates."""
    if not groups:
        return {}
    takers = {key: group[0].id for key, group in groups.items()}
    parameters = {"keys": list(takers), "ids": list(takers.values())}
    cursor = await connection.execute(query("hold_keys"), parameters, prepare=True)
    held: dict[str, UUID] = {key: job_id for key, job_id in await cursor.fetchall() if job_id != takers[key]}
    if not held:
        return {}
    to_replace = [held[key] for key in held if any(one.on_conflict is OnConflict.REPLACE for one in groups[key])]
    found = await _look(connection, list(held.values()), to_replace)
    live = {key: found[job_id] for key, job_id in held.items() if job_id in found}
    left = [key for key in held if key not in live]
    if left:
        await connection.execute(query("point_keys"), {"keys": left, "ids": [takers[key] for key in left]})
    return live


async def _look(connection: Connection, ids: list[UUID], to_replace: list[UUID]) -> dict[UUID, Holder]:
    """Those of these jobs that are neither cancelled nor gone. Those `to_replace` are locked, unless claimed."""
    locked: set[UUID] = set()
    while True:
        if to_replace:
            locked |= await _ids(connection, "lock_holders", to_replace)
        async with connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query("find_holders"), {"ids": ids}, prepare=True)
            rows = {row["id"]: row for row in await cursor.fetchall() if row["state"] != JobState.CANCELLED}
        # A run may have ended between the two statements.
        to_replace = [
            job_id
            for job_id in to_replace
            if job_id in rows and job_id not in locked and rows[job_id]["state"] != JobState.CLAIMED
        ]
        if not to_replace:
            return {job_id: _holder(row, locked=job_id in locked) for job_id, row in rows.items()}


def _holder(row: Mapping[str, Any], *, locked: bool) -> Holder:
    state = JobState(row["state"])
    return Holder(
        id=row["id"],
        state=state,
        next_run_at=row["next_run_at"],
        schedule=document_of(row["schedule"]),
        scheduled_for=row["scheduled_for"],
        cause=Cause(row["cause"]),
        attempt=row["attempt"],
        kept=tuple(row["kept"] or ()),
        decided_until=row["decided_until"],
        updated_at=row["updated_at"],
        claimed=state is JobState.CLAIMED and not locked,
        lease_owner=row["lease_owner"],
        lease_until=row["lease_until"],
        lease_generation=row["lease_generation"],
        read_at=row["read_at"],
    )


async def _replace(connection: Connection, replacing: Sequence[tuple[Holder, Creation]]) -> None:
    if not replacing:
        return
    await connection.execute(query("prefer_indexes"))
    waiting = [holder.id for holder, _ in replacing if waits_unattempted(holder.cause, holder.attempt)]
    begun = await _ids(connection, "find_handed_back", waiting) if waiting else set()
    rows = [
        record_of(one.new, holder.id)
        | {"held_next_run_at": holder.next_run_at, "decided_until": one.new.now}
        | {"skips": left_behind(holder, one.new.now, begun=holder.id in begun)}
        for holder, one in replacing
    ]
    due = [holder.next_run_at for holder, _ in replacing]
    parameters = {"rows": orjson.dumps(rows).decode(), "first_at": min(due), "last_at": max(due)}
    await connection.execute(query("replace_jobs"), parameters)


def left_behind(holder: Holder, now: datetime, *, begun: bool) -> tuple[Skip, ...]:
    """The ticks up to `now` that nothing has decided, and those that waited their turn: a new definition will run none.
    `begun`: a run of what the holder waits with was handed back."""
    if holder.state is JobState.DONE or holder.schedule is None:
        return ()
    reason = _PASSED.get(holder.state, SkipReason.RESCHEDULED)
    since = undecided_since(holder.cause, holder.attempt, holder.scheduled_for, holder.decided_until)
    waiting = waiting_ticks(holder.cause, holder.attempt, holder.scheduled_for, holder.kept, begun=begun)
    try:
        return given_up(parse_schedule(holder.schedule), waiting, since, now, reason)
    except ScheduleError as fault:
        _log.warning("the old schedule cannot be read: no skip is written", job_id=str(holder.id), fault=str(fault))
        return ()


async def find_landed(connection: Connection, ids: list[UUID]) -> set[UUID]:
    """Those of these new jobs that an earlier, unanswered try has stored."""
    return await _ids(connection, "find_landed_jobs", ids)


async def _ids(connection: Connection, name: str, ids: list[UUID]) -> set[UUID]:
    cursor = await connection.execute(query(name), {"ids": ids}, prepare=True)
    return {row[0] for row in await cursor.fetchall()}
