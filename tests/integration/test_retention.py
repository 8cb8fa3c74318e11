"""Retention on a real PostgreSQL: old days leave whole, live jobs outlive them, the rest is swept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from ringcron.clock import SystemClock
from ringcron.models import Definition
from ringcron.slots import new_job_id
from ringcron.store.connection import transact
from ringcron.store.creating import Created, NewJob, OnConflict
from ringcron.store.keyed import create
from ringcron.store.layout import DAY
from ringcron.store.link import PINNED_PLANS
from ringcron.store.pool import Pool
from ringcron.store.repartition import JOBS, RUNS, SKIPS, Table
from ringcron_sql import query
from tests.support.jobs import add_job, add_many, database_now, row_of
from tests.support.layouts import keep_up_for, layout, make_upkeep, names, partition_of
from tests.support.plans import explain
from tests.support.waiting import until

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]
TABLES = (JOBS, RUNS, SKIPS)


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True, options=PINNED_PLANS) as connection:
        yield connection


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    pool = Pool(database_url, application_name="upkeep", max_size=3, seconds=60)
    yield pool
    await pool.close()


async def add_run(connection: Connection, *, claimed_ago: float, finished_ago: float | None = None) -> None:
    await connection.execute(
        """
        insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id, started_at,
                          finished_at, outcome)
        select gen_random_uuid(), 1, now() - make_interval(secs => %(claimed)s), 1, now(), 'schedule', 'w1', now(),
               now() - make_interval(secs => %(finished)s), 'succeeded'
        """,
        {"claimed": claimed_ago, "finished": claimed_ago if finished_ago is None else finished_ago},
    )


async def test_a_day_without_live_jobs_is_dropped_once_it_is_old(pool: Pool, connection: Connection) -> None:
    today = await keep_up_for(connection, 9, JOBS)
    ended = await add_job(connection, due_in=-8 * 86400.0, state="done")

    done = await make_upkeep(pool).step()

    kept = [f"jobs_d{today + n * DAY:%Y%m%d}" for n in range(-7, 4)]
    assert await names(pool, JOBS) == ["jobs_past", *kept, "jobs_far"]
    assert [sentence.split(",")[0] for sentence in done if "dropped" in sentence] == [
        f"jobs: dropped jobs_d{today - n * DAY:%Y%m%d}" for n in (9, 8)
    ]
    cursor = await connection.execute("select count(*) from jobs where id = %s", (ended,))
    assert await cursor.fetchone() == (0,)
    late = await add_job(connection, due_in=-8 * 86400.0)  # a clock that was set back still finds a partition
    assert await partition_of(connection, late) == "jobs_past"


async def test_live_jobs_of_an_old_day_outlive_it_and_are_still_claimed(pool: Pool, connection: Connection) -> None:
    await keep_up_for(connection, 12, JOBS)
    due = [await add_job(connection, due_in=-days * 86400.0) for days in (11, 10)]
    running = await add_job(connection, due_in=-9 * 86400.0)
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w1', claimed_at = now(), lease_until = now() where id = %s",
        (running,),
    )
    due.append(running)
    before = [await row_of(connection, job_id) for job_id in due]

    done = await make_upkeep(pool).step()

    assert sum("dropped" in sentence and "1 rows moved" in sentence for sentence in done) == 3
    assert [await row_of(connection, job_id) for job_id in due] == before
    assert {await partition_of(connection, job_id) for job_id in due} == {"jobs_past"}


async def test_a_day_with_many_live_jobs_stays_and_takes_over_the_days_after_it(
    pool: Pool, connection: Connection
) -> None:
    today = await keep_up_for(connection, 10, JOBS)
    await add_many(connection, 1001, due_in=-9 * 86400.0)
    pinned = f"jobs_d{today - 9 * DAY:%Y%m%d}"
    upkeep = make_upkeep(pool)

    done = await upkeep.step()

    assert f"jobs: kept {pinned}, more than 1000 of its jobs are due or claimed" in done
    assert (await names(pool, JOBS))[:3] == ["jobs_past", pinned, f"jobs_d{today - 7 * DAY:%Y%m%d}"]
    assert await upkeep.step() == []  # said once, and left alone
    await connection.execute("delete from jobs where id in (select id from jobs limit 1)")
    done = await upkeep.step()
    assert len(done) == 1
    assert done[0].startswith(f"jobs: dropped {pinned}, 1000 rows moved")
    cursor = await connection.execute("select count(*) from jobs")
    assert await cursor.fetchone() == (1000,)


async def test_keys_and_tags_of_ended_jobs_leave_with_their_day(pool: Pool, connection: Connection) -> None:
    await keep_up_for(connection, 9, JOBS)
    ended = await add_job(connection, due_in=-8 * 86400.0, state="done", key="ended", tags=["a", "b"])
    await add_job(connection, due_in=-8 * 86400.0, state="cancelled", key="handed-on", tags=["a"])
    live = await add_job(connection, due_in=-8 * 86400.0, key="live", tags=["a"])
    young = await add_job(connection, due_in=-86400.0, state="done", key="young", tags=["a"])
    for key, job_id in (("ended", ended), ("handed-on", live), ("live", live), ("young", young)):
        await connection.execute("insert into job_keys values (%s, %s)", (key, job_id))
    await connection.execute("insert into job_tags select unnest(tags), id from jobs")

    await make_upkeep(pool).step()

    cursor = await connection.execute("select key, job_id from job_keys order by key")
    assert await cursor.fetchall() == [("handed-on", live), ("live", live), ("young", young)]
    cursor = await connection.execute("select tag, job_id from job_tags order by job_id")
    assert sorted(await cursor.fetchall()) == sorted([("a", live), ("a", young)])


async def test_a_job_that_is_brought_back_while_its_day_leaves_keeps_its_key_and_tags(
    pool: Pool, connection: Connection
) -> None:
    today = await keep_up_for(connection, 9, JOBS)
    job = await add_job(connection, due_in=-8 * 86400.0, state="done", key="k", tags=["t"])
    await connection.execute("insert into job_keys values ('k', %s)", (job,))
    await connection.execute("insert into job_tags values ('t', %s)", (job,))
    now = await database_now(connection)
    definition = Definition(handler="log", payload=None, run_at=now + DAY, key="k", tags=("t",))
    new = NewJob(id=new_job_id(now), definition=definition, created_at=now, scheduled_for=now + DAY)

    bounds = {"from_at": today - 8 * DAY, "until_at": today - 7 * DAY, "after": UUID(int=0)}

    async def work(connection: Connection) -> None:
        await connection.execute(query("sweep_keys"), bounds)

    async def somebody_waits() -> bool:
        cursor = await connection.execute(
            "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
        return await cursor.fetchone() is not None

    async with pool.connection() as api:
        async with api.transaction():
            assert (await create(api, new, OnConflict.REPLACE, first_try=True))[0] is Created.REPLACED
            sweep = asyncio.create_task(transact(pool, work, repeatable=True, give_up_after=0.0, clock=SystemClock()))
            await until(somebody_waits, what="the sweep waits for the create")
        await sweep

    row = await row_of(connection, job)
    assert (row["state"], row["key"]) == ("due", "k")
    for table in ("job_keys", "job_tags"):
        cursor = await connection.execute(f"select job_id from {table}")
        assert await cursor.fetchall() == [(job,)]


async def test_the_sweep_of_keys_reads_one_day(pool: Pool, connection: Connection) -> None:
    today = await keep_up_for(connection, 9, JOBS)
    await add_many(connection, 2000, due_in=-8 * 86400.0)
    await connection.execute("update jobs set state = 'done', key = id::text")
    await connection.execute("insert into job_keys select key, id from jobs")
    await connection.execute("analyze jobs, job_keys")
    bounds = {"from_at": today - 8 * DAY, "until_at": today - 7 * DAY, "after": UUID(int=0)}
    plan = await explain(connection, query("sweep_keys"), bounds)
    assert plan.partitions_of("jobs") == {f"jobs_d{today - 8 * DAY:%Y%m%d}"}
    assert "jobs_pkey" in plan.indexes
    assert plan.sequential <= {"job_tags"}, "it is empty"


async def test_runs_and_skips_leave_by_whole_days(pool: Pool, connection: Connection) -> None:
    today = await keep_up_for(connection, 4, RUNS, SKIPS)
    for days in range(5):
        await add_run(connection, claimed_ago=days * 86400.0)
        await connection.execute(
            "insert into skips select gen_random_uuid(), now() - make_interval(days => %s), now(), now(), 1, 'missed'",
            (days,),
        )
    await make_upkeep(pool, keep_runs_seconds=2 * 86400).step()
    for table in (RUNS, SKIPS):
        assert (await names(pool, table))[1] == f"{table.name}_d{today - 2 * DAY:%Y%m%d}"
        cursor = await connection.execute(f"select count(*) from {table.name}")
        assert await cursor.fetchone() == (3,)


async def test_the_oldest_days_of_runs_go_while_runs_take_too_much_but_never_today(
    pool: Pool, connection: Connection
) -> None:
    today = await keep_up_for(connection, 3, RUNS)
    for days in range(4):
        await connection.execute(
            """
            insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id,
                              started_at, finished_at, outcome, error)
            select gen_random_uuid(), n, %s, 1, now(), 'schedule', 'w1', now(), now(), 'failed', repeat('x', 500)
            from generate_series(1, 2000) n
            """,
            (today - days * DAY,),
        )
    sizes = dict(await (await connection.execute(query("size_partitions"), {"table": "runs"})).fetchall())
    day_size = sizes[f"runs_d{today:%Y%m%d}"]
    assert day_size > 1_000_000

    await make_upkeep(pool, keep_runs_bytes=2 * day_size + day_size // 2).step()
    assert (await names(pool, RUNS))[1] == f"runs_d{today - DAY:%Y%m%d}"
    await make_upkeep(pool, keep_runs_bytes=1).step()
    assert (await names(pool, RUNS))[1] == f"runs_d{today:%Y%m%d}"
    assert await (await connection.execute("select count(*) from runs")).fetchone() == (2000,)


async def test_what_lies_before_all_days_is_swept_when_its_time_is_up(pool: Pool, connection: Connection) -> None:
    await make_upkeep(pool).step()
    month = 31 * 86400.0
    gone = await add_job(connection, due_in=-month, state="done", key="gone", tags=["a"])
    await connection.execute("insert into job_keys values ('gone', %s)", (gone,))
    await connection.execute("insert into job_tags values ('a', %s)", (gone,))
    young = await add_job(connection, due_in=-5 * 86400.0, state="done")
    due = await add_job(connection, due_in=-month)
    assert {await partition_of(connection, job_id) for job_id in (gone, young, due)} == {"jobs_past"}
    await add_run(connection, claimed_ago=2 * month)
    await add_run(connection, claimed_ago=2 * month, finished_ago=60.0)  # it ran for two months
    await connection.execute(
        "insert into skips values (gen_random_uuid(), now() - interval '31 days', now(), now(), 1, 'missed')"
    )

    done = await make_upkeep(pool).step()

    assert done == [f"{table.name}: swept 1 old rows out of {table.name}_past" for table in TABLES]
    cursor = await connection.execute("select id from jobs order by next_run_at")
    assert await cursor.fetchall() == [(due,), (young,)]
    for table, left in (("job_keys", 0), ("job_tags", 0), ("runs", 1), ("skips", 0)):
        assert await (await connection.execute(f"select count(*) from {table}")).fetchone() == (left,)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
async def test_a_sweep_reads_only_the_first_partition(table: Table, pool: Pool, connection: Connection) -> None:
    await make_upkeep(pool).step()
    partitions = await layout(pool, table)
    plan = await explain(
        connection,
        query(f"sweep_past_{table.name}"),
        {"until_at": partitions[0].upper, "before": partitions[0].upper},
    )
    assert plan.partitions_of(table.name) == {f"{table.name}_past"}
    assert plan.subplans_removed == 0


async def test_live_jobs_are_counted_through_the_partial_indexes_whatever_statistics_say(
    pool: Pool, database_url: str, connection: Connection
) -> None:
    await make_upkeep(pool).step()
    await add_many(connection, 5000)
    await connection.execute("analyze jobs")
    await connection.execute("update jobs set state = 'done'")
    day = f"jobs_d{await database_now(connection):%Y%m%d}"
    async with await psycopg.AsyncConnection.connect(database_url) as plain:
        await plain.execute(query("prefer_indexes"))
        plan = await explain(plain, query("count_live_jobs").replace("{partition}", day), {"limit": 1001})
        assert plan.indexes == {"jobs_due", "jobs_claimed"}
        assert not plan.sequential
