"""New zone rules: waiting jobs are looked at once per version of tzdata.

Invariant: the version beside a recurring job is the one that chose its next tick. A tick is moved under the row's lock,
so that of a claim and a move each sees the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import structlog

from ringcron.changes import Change, follow_zone_rules
from ringcron.clock import Clock
from ringcron.errors import JobNotFound, ScheduleError
from ringcron.models import Job
from ringcron.schedule import tzdata_version
from ringcron.store.changing import change_job
from ringcron.store.connection import Connection, Connections, transact
from ringcron_sql import query

PORTION: Final = 500

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A job whose next tick moved with the rules of its zone."""

    job_id: UUID
    before: datetime
    after: datetime


class ZoneRules:
    """Brings waiting jobs to this process's version of tzdata, a portion at a step; `done` once none is left."""

    def __init__(self, connections: Connections, clock: Clock, *, tzdata: str | None = None) -> None:
        self._connections = connections
        self._clock = clock
        self._tzdata = tzdata or tzdata_version()
        self._after = UUID(int=0)
        self.done = False

    async def step(self) -> list[Moved]:
        """Look at the next portion; what moved. Does nothing once done."""
        if self.done:
            return []

        async def find(connection: Connection) -> list[UUID]:
            parameters = {"after": self._after, "tzdata": self._tzdata, "limit": PORTION}
            cursor = await connection.execute(query("list_outdated_jobs"), parameters)
            return [row[0] for row in await cursor.fetchall()]

        found = await transact(self._connections, find, repeatable=True, give_up_after=0.0, clock=self._clock)
        moved = [move for job_id in found if (move := await self._follow(job_id)) is not None]
        if found:
            self._after = found[-1]
        self.done = len(found) < PORTION
        return moved

    async def _follow(self, job_id: UUID) -> Moved | None:
        was: list[datetime] = []

        def decide(job: Job, now: datetime) -> Change:
            was.append(job.scheduled_for)
            return follow_zone_rules(job, now, tzdata=self._tzdata)

        async def work(connection: Connection) -> datetime:
            job, _ = await change_job(connection, job_id, decide)
            return job.scheduled_for

        try:
            after = await transact(self._connections, work, repeatable=True, give_up_after=0.0, clock=self._clock)
        except JobNotFound:
            return None
        except ScheduleError as fault:  # it goes dead with that reason when its turn comes
            _log.warning("zone rules cannot be followed", job=str(job_id), fault=str(fault))
            return None
        return Moved(job_id=job_id, before=was[0], after=after) if was[0] != after else None
