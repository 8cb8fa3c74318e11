"""Layouts of the partitioned tables, for tests of upkeep: made by hand, read, and checked to tile all of time."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import psycopg

from ringcron.clock import Clock, SystemClock
from ringcron.store.layout import DAY, Partition, midnight, partition_name
from ringcron.store.pool import Pool
from ringcron.store.repartition import Repartition, Table
from ringcron.store.upkeep import Upkeep
from tests.support.days import carve_days
from tests.support.jobs import database_now

DAYS_AHEAD = 3


def make_upkeep(pool: Pool, clock: Clock | None = None, **settings: Any) -> Upkeep:
    """Upkeep with short-sighted settings, each of which may be replaced; it tries again at once."""
    defaults: dict[str, Any] = {
        "days_ahead": DAYS_AHEAD,
        "keep_runs_seconds": 30 * 86400,
        "keep_jobs_seconds": 7 * 86400,
        "keep_runs_bytes": None,
        "retry_seconds": 0.0,
    }
    return Upkeep(pool, clock or SystemClock(), **(defaults | settings))


async def layout(pool: Pool, table: Table) -> list[Partition]:
    """The partitions of a table, which always tile all of time and are named after it."""
    partitions, _ = await Repartition(pool, SystemClock()).read(table)
    assert partitions[0].lower is None
    assert partitions[-1].upper is None
    assert all(left.upper == right.lower for left, right in pairwise(partitions))
    assert [partition.name for partition in partitions] == [
        partition_name(table.name, (partition.lower, partition.upper)) for partition in partitions
    ]
    return partitions


async def names(pool: Pool, table: Table, *, days_ahead: int = DAYS_AHEAD) -> list[str]:
    """The names of the partitions, without the months between the days ahead and far."""
    partitions, now = await Repartition(pool, SystemClock()).read(table)
    end = midnight(now) + (days_ahead + 1) * DAY
    return [p.name for p in partitions if p.lower is None or p.upper is None or p.upper <= end]


async def keep_up_for(connection: psycopg.AsyncConnection[Any], days: int, *tables: Table) -> datetime:
    """Lay the empty tables out as if upkeep had run for `days` days until today; answers with today's midnight."""
    now = await database_now(connection)
    for table in tables:
        await carve_days(connection, table.name, now, before=days, after=0)
    return midnight(now)


async def forget_upkeep(connection: psycopg.AsyncConnection[Any], days: int, *tables: Table) -> datetime:
    """Lay the empty tables out as if migrated `days` days ago and never kept up; answers with today's midnight."""
    today = midnight(await database_now(connection))
    for table in tables:
        for name, bounds in (
            (f"{table.name}_past", f"from (minvalue) to ('{today - days * DAY}')"),
            (f"{table.name}_far", f"from ('{today - days * DAY}') to (maxvalue)"),
        ):
            await connection.execute(f"drop table {name}")
            await connection.execute(f"create table {name} partition of {table.name} for values {bounds}")
    return today


async def partition_of(connection: psycopg.AsyncConnection[Any], job_id: object) -> str:
    """The partition in which a job is found."""
    cursor = await connection.execute("select tableoid::regclass::text from jobs where id = %s", (job_id,))
    row = await cursor.fetchone()
    assert row is not None
    return str(row[0])


def partition_at(partitions: list[Partition], instant: datetime) -> str:
    """The partition that a row of this instant belongs to."""
    return next(
        p.name for p in partitions if (p.lower is None or p.lower <= instant) and (p.upper is None or instant < p.upper)
    )
