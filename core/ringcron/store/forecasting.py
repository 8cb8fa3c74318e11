"""What a forecast is made of: the jobs that become due within a horizon, grouped.

Invariant: bounded work: of each handler the COUNTED soonest jobs are looked at, of HANDLERS handlers; `capped` says
whether there was more. For people and for scaling; nothing decides by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import orjson

from ringcron.errors import ScheduleError
from ringcron.forecast import Stream
from ringcron.schedule import Schedule, parse_schedule
from ringcron.store.calls import PATIENT_SECONDS, Calls
from ringcron.store.connection import Connection
from ringcron_sql import query

COUNTED: Final = 100_000
HANDLERS: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Ahead:
    """The jobs whose next firing lies in [start, start + the horizon)."""

    start: datetime
    streams: tuple[Stream, ...]
    capped: bool


class Foreseeing(Calls):
    """The read of a forecast."""

    async def ahead(self, seconds: int) -> Ahead:
        """What becomes due within `seconds` from the second that has begun."""
        start = (await self.now()).replace(microsecond=0)

        async def work(connection: Connection) -> Ahead:
            return await read_ahead(connection, start=start, seconds=seconds)

        return await self._run(work, connections=self._patient, seconds=PATIENT_SECONDS)


async def read_ahead(connection: Connection, *, start: datetime, seconds: int, most: int = COUNTED) -> Ahead:
    """`start`: a whole second."""
    parameters = {
        "from_at": start,
        "until_at": start + timedelta(seconds=seconds),
        "most": most,
        "limit": HANDLERS,
    }
    cursor = await connection.execute(query("forecast_due"), parameters, prepare=False)
    rows = await cursor.fetchall()
    schedules: Callable[[str], Schedule | None] = lru_cache(maxsize=None)(_schedule)
    jobs_of: dict[str, int] = {}
    for handler, _, _, jobs in rows:
        jobs_of[handler] = jobs_of.get(handler, 0) + jobs
    return Ahead(
        start=start,
        streams=tuple(
            Stream(handler=handler, schedule=None if text is None else schedules(text), first=second, jobs=jobs)
            for handler, text, second, jobs in rows
        ),
        capped=len(jobs_of) >= HANDLERS or any(jobs >= most for jobs in jobs_of.values()),
    )


def _schedule(text: str) -> Schedule | None:
    """None for one that makes no sense: its job will go dead when it is claimed, and say so."""
    try:
        return parse_schedule(orjson.loads(text))
    except ScheduleError:
        return None
