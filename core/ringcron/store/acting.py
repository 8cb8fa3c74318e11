"""What a person does to jobs and runs, as calls of the API: change one job, redrive many, cancel a run.

Invariant: each call may be tried again after a lost connection. A change is decided anew on the row as it then is,
unless an earlier try of it had landed: the row's updated_at tells, whatever workers did to the row since.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg.rows import dict_row

from ringcron.changes import Change
from ringcron.errors import RunFinished, RunNotFound
from ringcron.models import Cause, Job, SkipReason
from ringcron.store.audit import Act, record
from ringcron.store.calls import Calls
from ringcron.store.changing import Decide, change_locked
from ringcron.store.connection import Connection
from ringcron.store.rows import document_of
from ringcron.undecided import ticks_passed, undecided_since
from ringcron_sql import query

REDRIVE_BATCH: Final = 500
"""Jobs that one transaction of a redrive of many makes due."""
_BEFORE_ALL: Final = UUID(int=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadFilter:
    """Which dead jobs are to be redriven: the first `limit` of them by creation. None does not filter."""

    handler: str | None
    tag: str | None
    limit: int
    fingerprint: str | None = None
    """Of their errors, as `Looking.dead_groups` tells it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Redriven:
    """A job that was made due again."""

    slot: int
    next_run_at: datetime


class _Landed(Exception):
    """An earlier try of the same change had landed, unanswered."""

    def __init__(self, job: Job, change: Change) -> None:
        super().__init__(job.id)
        self.job = job
        self.change = change


class Acting(Calls):
    """Calls that change jobs which exist already."""

    async def change_job(self, job_id: UUID, decide: Decide, act: Act | None = None) -> tuple[Job, Change]:
        """The job after the change. `act`: for the audit log. Raises JobNotFound and whatever `decide` raises."""
        tried: list[tuple[Job, Change]] = []

        def decide_unless_landed(job: Job, now: datetime) -> Change:
            for after, change in tried:
                if job.updated_at == after.updated_at:
                    raise _Landed(job, change)
            return decide(job, now)

        async def work(connection: Connection) -> tuple[Job, Change]:
            try:
                async with connection.transaction():
                    tried.append(await change_locked(connection, job_id, decide_unless_landed, act))
            except _Landed as landed:
                return landed.job, landed.change
            return tried[-1]

        return await self._run(work)

    async def redrive_jobs(
        self, wanted: DeadFilter, *, per_second: float | None, act: Act | None = None
    ) -> list[Redriven]:
        """Make dead jobs due again, the oldest first, in several transactions: all now, or `per_second` of them."""
        redriven: list[Redriven] = []
        begun_at: datetime | None = None
        after, left = _BEFORE_ALL, wanted.limit
        while left > 0:
            parameters = {
                "after": after,
                "handler": wanted.handler,
                "tag": wanted.tag,
                "fingerprint": wanted.fingerprint,
                "limit": min(left, REDRIVE_BATCH),
            }
            ids = [row["id"] for row in await self._rows(query("list_dead_jobs"), parameters, prepare=False)]
            if not ids:
                break
            begun_at = begun_at or await self.now()
            redriven += await self._redrive(ids, begun_at, len(redriven), per_second, act)
            after, left = ids[-1], left - len(ids)
        return redriven

    async def _redrive(
        self, ids: Sequence[UUID], begun_at: datetime, before: int, per_second: float | None, act: Act | None
    ) -> list[Redriven]:
        """Those of these jobs that are still dead; `before` others had their turn already."""
        redriven: dict[UUID, tuple[Redriven, datetime]] = {}
        """With their updated_at; also what an earlier try did, whose answer was lost: those are not dead any more, or
        have died again since, as they were left."""

        async def work(connection: Connection) -> list[Redriven]:
            async with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(query("lock_dead_jobs"), {"ids": list(ids)})
                locked = await cursor.fetchall()
                held = [row for row in locked if row["updated_at"] != redriven.get(row["id"], (None, None))[1]]
                paces = [0.0 if per_second is None else (before + n) / per_second for n in range(len(held))]
                rows = [
                    _again(row, begun_at + timedelta(seconds=seconds)) for row, seconds in zip(held, paces, strict=True)
                ]
                await cursor.execute(query("redrive_jobs"), {"rows": orjson.dumps(rows).decode()})
                moved = await cursor.fetchall()
                if act is not None and moved:
                    detail = {**(act.detail or {}), "count": len(moved)}
                    await record(connection, dataclasses.replace(act, detail=detail), job_id=None)
                slots = {row["id"]: row["slot"] for row in held}
                for row in moved:  # noted before the commit, whose answer may be lost
                    again = Redriven(slot=slots[row["id"]], next_run_at=row["next_run_at"])
                    redriven[row["id"]] = again, row["updated_at"]
            return [again for again, _ in redriven.values()]

        return await self._run(work)

    async def request_cancel(self, job_id: UUID, generation: int, act: Act | None = None) -> str:
        """Ask the worker that holds this run, and that is the answer, to stop it. Raises RunNotFound, RunFinished."""
        parameters = {"id": job_id, "generation": generation}

        async def work(connection: Connection) -> str:
            async with connection.transaction():
                cursor = await connection.execute(query("request_cancel"), parameters, prepare=True)
                row = await cursor.fetchone()
                if row is not None and row[2]:
                    if act is not None:
                        await record(connection, act, job_id=job_id)
                    owner: str = row[3]
                    return owner
                cursor = await connection.execute(query("find_run"), parameters, prepare=True)
                if await cursor.fetchone() is None:
                    raise RunNotFound(f"no run has the id {job_id}.{generation}")
                raise RunFinished(f"the run {job_id}.{generation} has ended already")

        return await self._run(work)


def _again(row: dict[str, Any], at: datetime) -> dict[str, Any]:
    """A row of lock_dead_jobs as redrive_jobs takes it."""
    schedule = document_of(row["schedule"])
    since = undecided_since(Cause(row["cause"]), row["attempt"], row["scheduled_for"], row["decided_until"])
    skip = ticks_passed(schedule, since, row["now"], SkipReason.DEAD)
    return {
        "id": str(row["id"]),
        "next_run_at": at.isoformat(),
        "decided_until": (row["decided_until"] if schedule is None else row["now"]).isoformat(),
        "skip_first": None if skip is None else skip.first.isoformat(),
        "skip_last": None if skip is None else skip.last.isoformat(),
        "skip_count": 0 if skip is None else skip.count,
    }
