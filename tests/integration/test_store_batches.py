"""Many creates at once, by the store alone: lost answers, tries in flight, what PostgreSQL refuses, plans."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest

from ringcron.clock import SystemClock
from ringcron.errors import KeyExists, StatementRefused, StoreUnavailable
from ringcron.models import Definition, Job
from ringcron.slots import new_job_id
from ringcron.store.api import SESSION_OPTIONS, ApiStore
from ringcron.store.batching import BatchRefused, create_all, create_each
from ringcron.store.connection import Connection
from ringcron.store.creating import Created, Creation, NewJob, OnConflict, Outcome, Stored, insert_many
from ringcron.store.gathering import Gathering
from ringcron.store.pool import Pool
from ringcron_sql import query
from tests.support.days import carve_days
from tests.support.jobs import add_many, database_now
from tests.support.plans import explain
from tests.support.waiting import until

pytestmark = pytest.mark.store


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    pool = Pool(database_url, application_name="test", max_size=20, seconds=30, options=SESSION_OPTIONS)
    yield pool
    await pool.close()


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


class LosesAnswers:
    """Connections whose first `losses` uses are lost after all their work was done and committed."""

    def __init__(self, pool: Pool, losses: int) -> None:
        self._pool = pool
        self._losses = losses

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with self._pool.connection() as connection:
            yield connection
        if self._losses > 0:
            self._losses -= 1
            raise psycopg.OperationalError("the connection was lost")

    async def recover(self) -> None:
        pass


def creation(
    now: datetime,
    *,
    key: str | None = None,
    on_conflict: OnConflict = OnConflict.ERROR,
    payload: Any = None,
    due: timedelta = timedelta(days=1),
    tags: tuple[str, ...] = (),
) -> Creation:
    return Creation(
        id=new_job_id(now),
        common=Definition(handler="log", payload=None, run_at=now + due, tags=tags),
        run_at=now + due,
        key=key,
        payload=payload,
        created_at=now,
        scheduled_for=now + due,
        on_conflict=on_conflict,
    )


async def ids_of(connection: psycopg.AsyncConnection[Any]) -> list[UUID]:
    return [row[0] for row in await (await connection.execute("select id from jobs order by id")).fetchall()]


def kinds(outcomes: list[Outcome]) -> list[Any]:
    return [outcome.what if isinstance(outcome, Stored) else type(outcome) for outcome in outcomes]


@pytest.mark.parametrize("whole", [False, True])
async def test_a_batch_whose_answer_was_lost_finds_what_landed(
    pool: Pool, connection: psycopg.AsyncConnection[Any], whole: bool
) -> None:
    now = await database_now(connection)
    held = creation(now - timedelta(minutes=1), key="held")
    await create_each(connection, [held], first_try=True)
    jobs = [creation(now, key="a" if n == 1 else None, tags=("t",)) for n in range(5)]
    jobs.append(creation(now, key="a", on_conflict=OnConflict.KEEP))
    replaces = [
        creation(now - timedelta(seconds=n), key=key, on_conflict=OnConflict.REPLACE, payload=n)
        for key in ("a", "held")
        for n in (1, 2)
    ]
    losing = ApiStore(LosesAnswers(pool, 3), clock=SystemClock())
    outcomes = await losing.insert_jobs(jobs + replaces, whole=whole)
    assert kinds(outcomes) == [Created.CREATED] * 5 + [Created.KEPT] + [Created.REPLACED] * 4
    assert await ids_of(connection) == sorted([held.id, *(job.id for job in jobs[:5])])
    cursor = await connection.execute("select key, revision, payload from jobs where key is not null order by key")
    assert await cursor.fetchall() == [("a", 1, 2), ("held", 2, 2)]


async def test_a_chunk_that_landed_and_has_run_since_is_not_stored_again(
    connection: psycopg.AsyncConnection[Any],
) -> None:
    now = await database_now(connection)
    jobs = [creation(now) for _ in range(3)]
    await create_each(connection, jobs, first_try=True)
    await connection.execute("update jobs set next_run_at = next_run_at + interval '3 days', attempt = 1")
    assert kinds(await create_each(connection, jobs, first_try=False)) == [Created.CREATED] * 3
    assert len(await ids_of(connection)) == 3


async def test_a_chunk_that_is_still_in_flight_is_waited_for(
    database_url: str, connection: psycopg.AsyncConnection[Any]
) -> None:
    now = await database_now(connection)
    jobs = [creation(now, key=key) for key in (None, "a", None)]
    async with await psycopg.AsyncConnection.connect(database_url) as first:
        await first.execute("select 1")  # begins the transaction that is committed below
        await create_each(first, jobs, first_try=True)
        second = asyncio.create_task(create_each(connection, jobs, first_try=False))
        await until(lambda: _waits(first), what="the second try waits for the first")
        # The first try lands, and its jobs run before the second goes on.
        await first.execute("update jobs set next_run_at = next_run_at + interval '3 days'")
        await first.commit()
        assert kinds(await second) == [Created.CREATED] * 3
    assert await ids_of(connection) == sorted(job.id for job in jobs)


async def _waits(connection: psycopg.AsyncConnection[Any]) -> bool:
    cursor = await connection.execute("select count(*) from pg_locks where not granted")
    row = await cursor.fetchone()
    assert row is not None
    return bool(row[0])


async def test_what_the_server_refuses_is_refused_alone(connection: psycopg.AsyncConnection[Any]) -> None:
    now = await database_now(connection)
    jobs = [creation(now, key=key) for key in (None, "a", None, "a")]
    jobs[2] = jobs[2]._replace(scheduled_for=datetime.fromisoformat("1980-01-01T00:00:00Z"))
    outcomes = await create_each(connection, jobs, first_try=True)
    assert kinds(outcomes) == [Created.CREATED, Created.CREATED, StatementRefused, KeyExists]
    assert await ids_of(connection) == sorted([jobs[0].id, jobs[1].id])


async def test_all_or_none(connection: psycopg.AsyncConnection[Any]) -> None:
    now = await database_now(connection)
    await create_all(connection, [creation(now, key="a")], first_try=True)
    jobs = [creation(now), creation(now, key="b", tags=("t",)), creation(now, key="a"), creation(now, key="b")]
    with pytest.raises(BatchRefused) as refused:
        await create_all(connection, jobs, first_try=True)
    assert [(place, type(error)) for place, error in refused.value.errors] == [(2, KeyExists), (3, KeyExists)]
    for table in ("jobs", "job_keys"):
        assert await (await connection.execute(f"select count(*) from {table}".encode())).fetchone() == (1,)


async def test_two_batches_with_the_same_keys_do_not_wait_for_each_other(
    pool: Pool, connection: psycopg.AsyncConnection[Any]
) -> None:
    now = await database_now(connection)
    store = ApiStore(pool, clock=SystemClock())
    keys = [f"k{n:02}" for n in range(30)]
    await store.insert_jobs([creation(now, key=key) for key in keys[::2]], whole=True)
    batches = [
        [creation(now, key=key, on_conflict=OnConflict.KEEP) for key in (keys if turn % 2 else reversed(keys))]
        for turn in range(10)
    ]
    outcomes = await asyncio.gather(*(store.insert_jobs(jobs, whole=True) for jobs in batches))
    assert sum(kinds(outcome).count(Created.CREATED) for outcome in outcomes) == 15
    assert len(await ids_of(connection)) == 30


async def new_job(store: ApiStore, payload: Any = None, **members: Any) -> NewJob:
    now = await store.now()
    due = now + timedelta(days=1)
    definition = Definition(handler="log", payload=payload, run_at=due, **members)
    return NewJob(id=new_job_id(now), definition=definition, created_at=now, scheduled_for=due)


@pytest.mark.parametrize("losses", [0, 3])
async def test_creates_at_the_same_time_are_each_stored_once(
    pool: Pool, connection: psycopg.AsyncConnection[Any], losses: int
) -> None:
    store = ApiStore(LosesAnswers(pool, losses), clock=SystemClock())
    payloads: list[Any] = [None, 1.5, "a\u2028", {"b": 1, "a": [None]}, [], 10**18]
    news = [await new_job(store, payloads[n % 6], name=f"n{n}", tags=("t", f"t{n}")) for n in range(60)]
    stored = await asyncio.gather(*(store.insert_job(new, OnConflict.ERROR) for new in news))
    assert [(what, job.id) for what, job in stored] == [(Created.CREATED, new.id) for new in news]
    assert await ids_of(connection) == sorted(new.id for new in news)
    for new, (_, job) in zip(news, stored, strict=True):
        shown = await store.get_job(new.id)
        assert orjson.loads(orjson.dumps(shown.definition.payload)) == new.definition.payload
        assert orjson.dumps(job.definition.payload) == orjson.dumps(shown.definition.payload)
        assert (shown.definition.tags, shown.definition.name) == (new.definition.tags, new.definition.name)
        assert (shown.created_at, shown.next_run_at) == (job.created_at, job.next_run_at)
    assert await (await connection.execute("select count(*) from job_tags")).fetchone() == (120,)


async def test_creates_that_landed_together_and_have_run_since_are_not_stored_again(
    pool: Pool, connection: psycopg.AsyncConnection[Any]
) -> None:
    store = ApiStore(pool, clock=SystemClock())
    news = [await new_job(store) for _ in range(3)]
    await insert_many(connection, news, first_try=True)
    await connection.execute("update jobs set next_run_at = next_run_at + interval '3 days', attempt = 1")
    again = await insert_many(connection, news, first_try=False)
    assert [(job.id, job.attempt) for job in again] == [(new.id, 1) for new in news]
    assert len(await ids_of(connection)) == 3


async def test_one_refused_create_does_not_refuse_those_beside_it(
    pool: Pool, connection: psycopg.AsyncConnection[Any]
) -> None:
    store = ApiStore(pool, clock=SystemClock())
    news = [await new_job(store, "\0" if n == 7 else n) for n in range(20)]
    results = await asyncio.gather(*(store.insert_job(new, OnConflict.ERROR) for new in news), return_exceptions=True)
    assert [n for n, result in enumerate(results) if isinstance(result, psycopg.DataError)] == [7]
    assert len(await ids_of(connection)) == 19


async def test_a_caller_waits_no_longer_than_it_was_promised() -> None:
    begun = asyncio.Event()
    groups = []

    async def store(together: Any) -> list[Job]:
        groups.append(len(together))
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    gathering = Gathering(store, seconds=0.05)
    now = datetime.fromisoformat("2027-01-01T00:00:00Z")
    results = await asyncio.gather(*(gathering.insert(creation(now).new) for _ in range(5)), return_exceptions=True)
    assert begun.is_set()
    assert {type(result) for result in results} == {StoreUnavailable}
    for task in list(gathering._flushing):
        task.cancel()
    assert sum(groups) <= 5


async def test_the_plans(connection: psycopg.AsyncConnection[Any]) -> None:
    now = await database_now(connection)
    await carve_days(connection, "jobs", now, before=3, after=3)
    for due_in in (-86400.0, 60.0, 86400.0):
        await add_many(connection, 3000, due_in=due_in)
    await connection.execute("insert into job_keys select 'k' || n, gen_random_uuid() from generate_series(1, 2000) n")
    await connection.execute("analyze")
    ids = await ids_of(connection)
    full = {f"jobs_d{now + timedelta(days=days):%Y%m%d}" for days in (-1, 0, 1)}
    landed = await explain(connection, query("find_landed_jobs"), {"ids": ids[:100]})
    assert landed.indexes == {"jobs_pkey"}
    assert not landed.sequential & full
    inserted = await explain(connection, query("insert_jobs"), {"jobs": "[]"})
    assert not {table for table in inserted.sequential if table.startswith("jobs")}
