"""Upkeep on a real PostgreSQL: days are carved in time, and nothing is lost or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from ringcron.clock import SystemClock
from ringcron.models import PARKED
from ringcron.store import repartition as repartition_module
from ringcron.store.bounds import near
from ringcron.store.layout import DAY, Split, midnight
from ringcron.store.link import PINNED_PLANS
from ringcron.store.pool import Pool
from ringcron.store.repartition import JOBS, RUNS, SKIPS, Busy, Repartition
from ringcron.store.upkeep import Upkeep
from ringcron_sql import query
from tests.support.days import day_names
from tests.support.jobs import add_job, add_many, database_now, row_of
from tests.support.layouts import forget_upkeep, keep_up_for, layout, make_upkeep, names, partition_at, partition_of
from tests.support.plans import explain
from tests.support.waiting import until

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]
TABLES = (JOBS, RUNS, SKIPS)
MONTHS = JOBS.months_ahead + 1
"""Partitions of `jobs` between the days ahead and far: the rest of a month, and the months after it."""


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True, options=PINNED_PLANS) as connection:
        yield connection


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    pool = Pool(database_url, application_name="upkeep", max_size=3, seconds=60)
    yield pool
    await pool.close()


async def test_today_and_the_days_ahead_are_carved_out_of_far_for_every_table(
    pool: Pool, connection: Connection
) -> None:
    upkeep = make_upkeep(pool)
    done = await upkeep.step()
    today = midnight(await database_now(connection))
    for table in TABLES:
        days = [f"{table.name}_d{today + n * DAY:%Y%m%d}" for n in range(4)]
        assert await names(pool, table) == [f"{table.name}_past", *days, f"{table.name}_far"]
    assert len(await layout(pool, JOBS)) == 6 + MONTHS
    assert len(done) == 3 * 4 + MONTHS
    assert done[0].startswith(f"jobs: carved jobs_d{today:%Y%m%d} up to {today + DAY:%Y-%m-%d}, 0 rows moved")
    assert await upkeep.step() == []


async def test_rows_that_lay_in_far_are_moved_to_their_day_and_found_there(pool: Pool, connection: Connection) -> None:
    ids = [await add_job(connection, due_in=day * 86400.0) for day in range(9)]
    parked = await add_job(connection)
    await connection.execute("update jobs set state = 'dead', next_run_at = %s where id = %s", (PARKED, parked))
    before = {job_id: await row_of(connection, job_id) for job_id in ids}

    await make_upkeep(pool, days_ahead=5).step()

    partitions = await layout(pool, JOBS)
    for job_id in ids:
        row = await row_of(connection, job_id)
        assert row == before[job_id]
        assert await partition_of(connection, job_id) == partition_at(partitions, row["next_run_at"])
    assert await partition_of(connection, parked) == "jobs_far"


async def test_every_partition_has_the_indexes_and_checks_of_its_table_and_no_more(
    pool: Pool, connection: Connection
) -> None:
    await make_upkeep(pool, days_ahead=6).step()
    cursor = await connection.execute(
        """
        select p.relname, c.relname,
               (select count(*) from pg_index x where x.indrelid = c.oid) -
               (select count(*) from pg_index x where x.indrelid = p.oid),
               (select count(*) from pg_index x where x.indrelid = c.oid and not exists (
                    select from pg_inherits h where h.inhrelid = x.indexrelid)),
               (select count(*) from pg_constraint x where x.conrelid = c.oid and contype <> 'n') -
               (select count(*) from pg_constraint x where x.conrelid = p.oid and contype <> 'n')
        from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
        where p.relkind = 'p'
        """
    )
    rows = await cursor.fetchall()
    assert len(rows) == 3 * 9 + MONTHS
    assert [row for row in rows if row[2:] != (0, 0, 0)] == []


async def test_a_carved_day_is_vacuumed_early(pool: Pool, connection: Connection) -> None:
    await make_upkeep(pool).step()
    day = partition_at(await layout(pool, JOBS), await database_now(connection))
    cursor = await connection.execute("select reloptions from pg_class where oid = %s::regclass", (day,))
    assert await cursor.fetchone() == (["autovacuum_vacuum_threshold=5000", "autovacuum_vacuum_scale_factor=0.02"],)


async def test_after_a_long_stop_the_days_that_passed_share_a_partition_and_few_rows_move(
    pool: Pool, connection: Connection
) -> None:
    today = await forget_upkeep(connection, 20, JOBS)
    await add_many(connection, 500, due_in=-3 * 86400.0)
    await add_many(connection, 20, due_in=10 * 86400.0)
    old = await add_job(connection, due_in=-19 * 86400.0)

    done = await make_upkeep(pool).step()

    first = f"jobs_d{today - 20 * DAY:%Y%m%d}"
    days = [f"jobs_d{today + n * DAY:%Y%m%d}" for n in range(4)]
    assert await names(pool, JOBS) == ["jobs_past", first, *days, "jobs_far"]
    assert done[0].startswith(f"jobs: carved {first} up to {today:%Y-%m-%d}, 20 rows moved")
    assert await partition_of(connection, old) == first
    cursor = await connection.execute("select tableoid::regclass::text, count(*) from jobs group by 1 order by 1")
    ahead = partition_at(await layout(pool, JOBS), await database_now(connection) + 10 * DAY)
    assert await cursor.fetchall() == [(first, 501), (ahead, 20)]


async def test_while_upkeep_stands_still_jobs_in_far_are_claimed_all_the_same(connection: Connection) -> None:
    job_id = await add_job(connection)
    assert await partition_of(connection, job_id) == "jobs_far"
    bounds = near(await database_now(connection))
    parameters = claim_parameters(bounds.from_at, bounds.until_at)
    claimed = await (await connection.execute(query("claim"), parameters)).fetchall()
    assert [row[0] for row in claimed] == [job_id]


def claim_parameters(from_at: datetime, until_at: datetime) -> dict[str, Any]:
    return {
        "handlers": ["noop"],
        "lo": 0,
        "hi": 4095,
        "from_at": from_at,
        "until_at": until_at,
        "overdue": 0.0,
        "solo": False,
        "batch": 10,
        "owner": "w1.00000001",
        "lease": 15.0,
    }


async def test_a_bounded_claim_touches_only_the_days_in_its_bounds(pool: Pool, connection: Connection) -> None:
    today = await keep_up_for(connection, 5, JOBS)
    await make_upkeep(pool).step()
    bounds = near(await database_now(connection))
    plan = await explain(connection, query("claim"), claim_parameters(bounds.from_at, bounds.until_at))
    days = {midnight(bounds.from_at), today - DAY, today, midnight(bounds.until_at - timedelta(microseconds=1))}
    assert plan.partitions == day_names("jobs", *days)
    assert plan.subplans_removed <= 1  # tomorrow, in the last hours of a day
    assert plan.indexes == {"jobs_due", "jobs_pkey"}


async def test_traffic_that_holds_its_locks_makes_upkeep_step_back_for_a_while(pool: Pool, database_url: str) -> None:
    clock = HandClock()
    upkeep = Upkeep(
        pool,
        clock,
        days_ahead=1,
        keep_runs_seconds=86400,
        keep_jobs_seconds=86400,
        keep_runs_bytes=None,
    )
    async with await psycopg.AsyncConnection.connect(database_url) as traffic:
        await traffic.execute("select count(*) from jobs")  # its transaction stays open
        done = await upkeep.step()
        assert done[0] == "jobs: no lock to be had beside traffic; next try in 60 s"
        assert len(await names(pool, RUNS, days_ahead=1)) == 4
        assert await upkeep.step() == []
        await traffic.rollback()
    assert await upkeep.step() == []
    clock.seconds += 60.0
    assert len(await upkeep.step()) == 2 + MONTHS
    assert len(await names(pool, JOBS, days_ahead=1)) == 4


class HandClock(SystemClock):
    """A clock that is moved by hand."""

    seconds = 1000.0

    def elapsed(self) -> float:
        return self.seconds


async def test_a_table_that_fails_does_not_keep_the_others_from_theirs(pool: Pool, connection: Connection) -> None:
    today = midnight(await database_now(connection))
    await connection.execute(f"create table jobs_d{today:%Y%m%d} (in_the_way int)")
    with pytest.raises(psycopg.errors.DuplicateTable):
        await make_upkeep(pool).step()
    assert len(await names(pool, JOBS)) == 2
    assert len(await names(pool, RUNS)) == len(await names(pool, SKIPS)) == 6


async def test_a_change_that_was_planned_for_another_layout_is_not_made(pool: Pool, connection: Connection) -> None:
    repartition = Repartition(pool, SystemClock())
    partitions, now = await repartition.read(JOBS)
    split = Split(partition=partitions[-1], at=midnight(now) + 2 * DAY)
    await make_upkeep(pool, days_ahead=0).step()
    before = await layout(pool, JOBS)
    with pytest.raises(Busy):
        await repartition.split(JOBS, split)
    assert await layout(pool, JOBS) == before


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/Los_Angeles"])
async def test_days_are_those_of_utc_whatever_the_zone_of_the_server(
    zone: str, pool: Pool, connection: Connection
) -> None:
    name = connection.info.dbname
    await connection.execute(f"alter database {name} set timezone = '{zone}'")
    await connection.execute(f"alter database {name} set datestyle = 'SQL, DMY'")
    await make_upkeep(pool, days_ahead=1).step()
    today = midnight(await database_now(connection))
    assert [partition.lower for partition in await layout(pool, RUNS)] == [None, today, today + DAY, today + 2 * DAY]
    assert (await names(pool, JOBS, days_ahead=1))[1:3] == [f"jobs_d{today:%Y%m%d}", f"jobs_d{today + DAY:%Y%m%d}"]


@pytest.mark.parametrize(("due_in_days", "ahead"), [((1, 30), 3), ((-9, -30), 0)], ids=["split", "close"])
async def test_no_partition_is_locked_against_traffic_before_its_table_is(
    due_in_days: tuple[int, ...],
    ahead: int,
    pool: Pool,
    database_url: str,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order of locks: a statement that already holds the table's lock still gets those of the partitions."""
    monkeypatch.setattr(repartition_module, "_STOP_MILLISECONDS", 30_000)
    await keep_up_for(connection, 9, JOBS)
    async with await psycopg.AsyncConnection.connect(database_url) as traffic:
        await traffic.execute("set local lock_timeout = '500ms'")  # before PostgreSQL looks for deadlocks
        await traffic.execute("lock table only jobs in row exclusive mode")
        step = asyncio.create_task(make_upkeep(pool, days_ahead=ahead).step())
        await until(lambda: waits_for_jobs(connection))
        for days in due_in_days:
            await add_job(traffic, due_in=days * 86400.0)
        await traffic.commit()
    await step
    assert await (await connection.execute("select count(*) from jobs")).fetchone() == (2,)


async def waits_for_jobs(connection: Connection) -> bool:
    cursor = await connection.execute(
        "select from pg_locks where not granted and relation = 'jobs'::regclass and mode = 'AccessExclusiveLock'"
    )
    return await cursor.fetchone() is not None


async def test_several_coordinators_may_do_upkeep_at_once(pool: Pool, connection: Connection) -> None:
    await keep_up_for(connection, 9, *TABLES)
    await add_many(connection, 300, due_in=2 * 86400.0)
    upkeeps = [make_upkeep(pool, days_ahead=4) for _ in range(3)]
    for _ in range(3):  # who finds another one at work leaves that table to it for this turn
        await asyncio.gather(*(upkeep.step() for upkeep in upkeeps))
    await upkeeps[0].step()
    for table in TABLES:
        assert len(await names(pool, table, days_ahead=4)) == (14 if table is JOBS else 16)
    assert await (await connection.execute("select count(*) from jobs")).fetchone() == (300,)
