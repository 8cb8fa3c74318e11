"""What a leader counts every few seconds: the figures, and that they cost no more on a large table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from ringcron.clock import SystemClock
from ringcron.models import PARKED
from ringcron.store.bounds import near
from ringcron.store.census import take_census
from ringcron.store.pool import Pool
from ringcron_sql import query
from tests.support.days import carve_days
from tests.support.jobs import add_many, database_now
from tests.support.plans import explain

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    """A worker that has `noop`; jobs of every age, some due soon, some dead. Statistics say that nothing is there."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await carve_days(connection, "jobs", await database_now(connection), before=4, after=4)
        await connection.execute("analyze")
        await connection.execute(
            "insert into workers (worker_id, name, capacity, running, handlers, version, tzdata, epoch, draining, "
            "slices, seen_at) values ('w.0', 'w', 1, 0, '{noop}', '1', '2026f', 1, false, '[]', now())"
        )
        for due_in in (-86400.0 * 2, -60.0):
            await add_many(connection, 3000, due_in=due_in)
        await connection.execute("update jobs set state = 'done' where next_run_at < now() - interval '1 second'")
        for due_in in (-30.0, 3600.0 * 30):
            await add_many(connection, 300, due_in=due_in)
        await add_many(connection, 500, due_in=40, handler="nobody-has-it")
        await add_many(connection, 3000, due_in=86400.0 * 7)
        await add_many(connection, 20, due_in=86400.0 * 20)
        await connection.execute(
            "update jobs set state = 'dead', next_run_at = %s where next_run_at > now() + interval '9 days'", (PARKED,)
        )
        await add_many(connection, 40, due_in=40)
        yield connection


async def test_the_figures(connection: Connection, database_url: str) -> None:
    pool = Pool(database_url, application_name="test", max_size=1)
    clock = SystemClock()
    async with await psycopg.AsyncConnection.connect(database_url) as old:
        await old.execute("create table holds_back_the_removal_of_dead_rows ()")
        before = await take_census(pool, clock)
        await old.rollback()
        after = await take_census(pool, clock)
    await pool.close()
    assert (before.due_soon, before.dead) == (40, 20)
    assert before.oldest_snapshot_seconds > 0
    assert after.oldest_snapshot_seconds < before.oldest_snapshot_seconds


@pytest.mark.parametrize("analyzed", [False, True])
async def test_each_figure_is_read_from_an_index_of_the_days_that_can_hold_it(
    connection: Connection, analyzed: bool
) -> None:
    if analyzed:
        await connection.execute("analyze")
    bounds = near(await database_now(connection))
    parameters = {"ahead": 60.0, "seen_within": 15.0, "from_at": bounds.from_at, "until_at": bounds.until_at}
    plan = await explain(connection, query("count_due_soon"), parameters, analyze=True)
    assert "jobs_due" in plan.indexes <= {"jobs_due", "workers_pkey"}
    assert len(plan.partitions_of("jobs")) <= 3
    assert sum(n["Actual Rows"] for n in plan.nodes() if n.get("Relation Name", "").startswith("jobs")) == 40

    plan = await explain(connection, query("count_dead"), {"limit": 15}, analyze=True)
    assert plan.indexes == {"jobs_set_aside"}
    assert plan.partitions == {"jobs_far"}
    cursor = await connection.execute(query("count_dead"), {"limit": 15})
    assert await cursor.fetchone() == (15,)
