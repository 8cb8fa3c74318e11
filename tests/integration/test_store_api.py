"""The API's statements by themselves: creates that are tried again, keys under contention, reads of hostile rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from ringcron import changes
from ringcron.clock import SystemClock
from ringcron.errors import JobNotFound, StoreUnavailable, WrongState
from ringcron.models import Cause, Definition, JobState
from ringcron.slots import new_job_id
from ringcron.store.acting import DeadFilter
from ringcron.store.api import SESSION_OPTIONS, ApiStore
from ringcron.store.connection import Connection
from ringcron.store.creating import Created, NewJob, OnConflict
from ringcron.store.keyed import create
from ringcron.store.listing import JobFilter
from ringcron.store.pool import Pool
from tests.support.jobs import add_job, database_now
from tests.support.waiting import until

pytestmark = pytest.mark.store


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    pool = Pool(database_url, application_name="test", max_size=20, seconds=30, options=SESSION_OPTIONS)
    yield pool
    await pool.close()


@pytest.fixture
def store(pool: Pool) -> ApiStore:
    return ApiStore(pool, clock=SystemClock())


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


class LosesAnswers:
    """Connections of which, after some uses, `losses` are lost after all their work was done and committed."""

    def __init__(self, pool: Pool, losses: int, *, after: int = 0) -> None:
        self._pool = pool
        self._losses = losses
        self._after = after

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with self._pool.connection() as connection:
            yield connection
        self._after -= 1
        if self._after < 0 < self._losses:
            self._losses -= 1
            raise psycopg.OperationalError("the connection was lost")

    async def recover(self) -> None:
        pass


async def new_job(store: ApiStore, *, key: str | None = None, **members: Any) -> NewJob:
    now = await store.now()
    definition = Definition(handler="log", payload={"a": 1}, run_at=now + timedelta(days=1), key=key, **members)
    due = now + timedelta(days=1)
    return NewJob(id=new_job_id(now), definition=definition, created_at=now, scheduled_for=due)


async def jobs_of(connection: psycopg.AsyncConnection[Any]) -> list[tuple[Any, ...]]:
    cursor = await connection.execute("select id, state, revision from jobs order by id")
    return await cursor.fetchall()


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_create_whose_answer_was_lost_finds_its_own_row(
    pool: Pool, connection: psycopg.AsyncConnection[Any], key: str | None
) -> None:
    store = ApiStore(LosesAnswers(pool, 0), clock=SystemClock())
    new = await new_job(store, key=key)
    losing = ApiStore(LosesAnswers(pool, 3), clock=SystemClock())
    what, job = await losing.insert_job(new, OnConflict.ERROR)
    assert (what, job.id) == (Created.CREATED, new.id)
    assert await jobs_of(connection) == [(new.id, "due", 1)]


async def test_a_create_whose_answer_was_lost_finds_its_row_where_it_went(
    store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    new = await new_job(store)
    await create(connection, new, OnConflict.ERROR, first_try=True)
    await connection.execute("update jobs set next_run_at = next_run_at + interval '3 days', attempt = 1")
    _, job = await create(connection, new, OnConflict.ERROR, first_try=False)
    assert job.attempt == 1
    assert len(await jobs_of(connection)) == 1


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_create_that_is_still_in_flight_is_waited_for(
    database_url: str, store: ApiStore, connection: psycopg.AsyncConnection[Any], key: str | None
) -> None:
    new = await new_job(store, key=key)
    async with await psycopg.AsyncConnection.connect(database_url) as first:
        await first.execute("select 1")  # begins the transaction that is committed below
        await create(first, new, OnConflict.ERROR, first_try=True)
        second = asyncio.create_task(create(connection, new, OnConflict.ERROR, first_try=False))
        await until(lambda: waiting_for_a_lock(first), what="the second try waits for the first")
        await first.commit()
        what, job = await second
    assert (what, job.id) == (Created.CREATED, new.id)
    assert await jobs_of(connection) == [(new.id, "due", 1)]


async def waiting_for_a_lock(connection: psycopg.AsyncConnection[Any]) -> bool:
    cursor = await connection.execute("select count(*) from pg_locks where not granted")
    row = await cursor.fetchone()
    assert row is not None
    return bool(row[0])


async def test_a_replacement_whose_answer_was_lost_happens_once(
    pool: Pool, store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    _, first = await store.insert_job(await new_job(store, key="k"), OnConflict.ERROR)
    losing = ApiStore(LosesAnswers(pool, 2), clock=SystemClock())
    what, job = await losing.insert_job(await new_job(store, key="k"), OnConflict.REPLACE)
    assert (what, job.id, job.revision) == (Created.REPLACED, first.id, 2)
    assert await jobs_of(connection) == [(first.id, "due", 2)]


async def test_a_cancel_whose_answer_was_lost_is_a_repeat(
    pool: Pool, store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    _, job = await store.insert_job(await new_job(store), OnConflict.ERROR)
    await ApiStore(LosesAnswers(pool, 1), clock=SystemClock()).cancel_job(job.id)
    assert (await store.get_job(job.id)).state is JobState.CANCELLED


async def test_acts_whose_answers_were_lost_are_done(
    pool: Pool, store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    """A redrive that landed finds no dead job on its next try; that is no refusal."""
    jobs = [(await store.insert_job(await new_job(store), OnConflict.ERROR))[1] for _ in range(3)]
    await connection.execute("update jobs set state = 'dead', next_run_at = '9500-01-01Z', dead_reason = 'boom'")
    job, _ = await ApiStore(LosesAnswers(pool, 1), clock=SystemClock()).change_job(jobs[0].id, changes.redrive)
    assert (job.state, job.revision) == (JobState.DUE, 2)
    for decide in (changes.trigger, changes.resume, changes.cancel_after_current):
        await ApiStore(LosesAnswers(pool, 1), clock=SystemClock()).change_job(jobs[0].id, decide)
    assert (await store.get_job(jobs[0].id)).state is JobState.CANCELLED
    with pytest.raises(WrongState):
        await store.change_job(jobs[0].id, changes.redrive)

    losing = ApiStore(LosesAnswers(pool, 1, after=2), clock=SystemClock())  # it lists, and reads the clock
    redriven = await losing.redrive_jobs(DeadFilter(handler=None, tag=None, limit=1), per_second=None)
    assert [each.slot for each in redriven] == [jobs[1].slot]
    states = sorted(state for _, state, _ in await jobs_of(connection))
    assert states == ["cancelled", "dead", "due"]  # no more than the limit


async def test_a_trigger_whose_answer_was_lost_runs_once_though_a_worker_came_between(
    pool: Pool, store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    """The second try finds the job claimed, and must not take that for a run to wait for."""
    _, job = await store.insert_job(await new_job(store), OnConflict.ERROR)
    losing = LosesAnswers(pool, 1)

    async def claimed_meanwhile() -> None:
        await connection.execute(
            "update jobs set state = 'claimed', attempt = 1, lease_owner = 'w', lease_generation = 1, "
            "claimed_at = now(), lease_until = now() + interval '1 minute'"
        )

    losing.recover = claimed_meanwhile  # type: ignore[method-assign]
    job, change = await ApiStore(losing, clock=SystemClock()).change_job(job.id, changes.trigger)
    assert (job.state, job.revision, job.after_current, change.waits) == (JobState.CLAIMED, 2, None, False)

    job, change = await ApiStore(LosesAnswers(pool, 1), clock=SystemClock()).change_job(job.id, changes.trigger)
    assert (job.revision, job.after_current, change.waits) == (3, {"trigger": True}, True)


async def test_of_many_jobs_each_is_redriven_once_though_one_has_died_again_before_the_second_try(
    pool: Pool, store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    jobs = [(await store.insert_job(await new_job(store), OnConflict.ERROR))[1] for _ in range(2)]
    dies = "update jobs set state = 'dead', next_run_at = '9500-01-01Z', dead_reason = 'boom' where id = any(%s)"
    await connection.execute(dies, ([job.id for job in jobs],))
    losing = LosesAnswers(pool, 1, after=2)  # it lists, and reads the clock

    async def one_dies_again() -> None:
        await connection.execute(dies, ([jobs[0].id],))

    losing.recover = one_dies_again  # type: ignore[method-assign]
    wanted = DeadFilter(handler=None, tag=None, limit=10)
    redriven = await ApiStore(losing, clock=SystemClock()).redrive_jobs(wanted, per_second=None)
    assert sorted(each.slot for each in redriven) == sorted(job.slot for job in jobs)
    assert await jobs_of(connection) == [(jobs[0].id, "dead", 2), (jobs[1].id, "due", 2)]


async def test_a_change_that_did_not_land_is_made_though_another_had_its_revision(
    pool: Pool, store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    _, job = await store.insert_job(await new_job(store), OnConflict.ERROR)

    class LostBeforeTheCommit(LosesAnswers):
        @asynccontextmanager
        async def connection(self) -> AsyncIterator[Connection]:
            async with super().connection() as connection, connection.transaction(force_rollback=self._losses > 0):
                yield connection

    losing = LostBeforeTheCommit(pool, 1)

    async def paused_meanwhile() -> None:
        await store.change_job(job.id, lambda job, now: changes.pause(job, now, reason=None, by=None))

    losing.recover = paused_meanwhile  # type: ignore[method-assign]
    after, _ = await ApiStore(losing, clock=SystemClock()).change_job(job.id, changes.trigger)
    assert (after.state, after.cause, after.revision) == (JobState.DUE, Cause.MANUAL, 3)


@pytest.mark.parametrize("on_conflict", list(OnConflict))
async def test_many_creates_with_one_key_make_one_job(
    store: ApiStore, connection: psycopg.AsyncConnection[Any], on_conflict: OnConflict
) -> None:
    new = [await new_job(store, key="k") for _ in range(50)]
    results = await asyncio.gather(*(store.insert_job(one, on_conflict) for one in new), return_exceptions=True)
    created = [result for result in results if not isinstance(result, BaseException) and result[0] is Created.CREATED]
    assert len(created) == 1
    assert not [result for result in results if isinstance(result, StoreUnavailable)]
    assert len(await jobs_of(connection)) == 1


async def test_creates_and_cancels_of_one_key_leave_one_holder_or_none(
    store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    """The key row and the job row are locked in opposite orders: deadlocks are tried again, and nothing is torn."""

    async def create_and_cancel() -> None:
        _, job = await store.insert_job(await new_job(store, key="k"), OnConflict.REPLACE)
        await store.cancel_job(job.id)

    await asyncio.gather(*(create_and_cancel() for _ in range(40)))
    live = [row for row in await jobs_of(connection) if row[1] != "cancelled"]
    assert live == []
    assert await (await connection.execute("select * from job_keys")).fetchall() == []


async def test_the_clock_is_read_again_after_a_second(
    store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    before = await database_now(connection)
    first = await store.now()
    second = await store.now()
    assert before < first < second < await database_now(connection) + timedelta(seconds=0.5)


async def test_a_row_with_hostile_values_spoils_no_list(
    store: ApiStore, connection: psycopg.AsyncConnection[Any]
) -> None:
    good = await add_job(connection)
    for schedule in ('"soon"', "[1]", "7", "null", '{"every": 99999999999999999999999999}'):
        bad = await add_job(connection)
        await connection.execute("update jobs set schedule = %s, run_at = null where id = %s", (schedule, bad))
    await connection.execute("alter table jobs drop constraint readable_instants")
    await add_job(connection, updated_at="infinity", created_at="-infinity", min_backoff_seconds=float("inf"))
    await connection.execute("update jobs set payload = ('[1e400, ' || repeat('9', 400) || ']')::jsonb")
    jobs = await store.list_jobs(JobFilter(), after=None, by_time=False, limit=10, with_payload=True)
    assert len(jobs) == 7
    assert (await store.get_job(good)).id == good


async def test_ids_that_were_never_given(store: ApiStore) -> None:
    for value in (0, 2**128 - 1, 1 << 80):
        with pytest.raises(JobNotFound):
            await store.list_runs(UUID(int=value), before_generation=None, limit=1)
        with pytest.raises(JobNotFound):
            await store.list_skips(UUID(int=value), before=None, limit=1)
        with pytest.raises(JobNotFound):
            await store.cancel_job(UUID(int=value))


async def test_a_database_that_was_never_migrated_is_unavailable(empty_database_url: str) -> None:
    pool = Pool(empty_database_url, application_name="test", max_size=2, seconds=30)
    store = ApiStore(pool, clock=SystemClock())
    try:
        assert await store.schema_version() == 0
        with pytest.raises(StoreUnavailable):
            await store.get_job(UUID(int=1))
    finally:
        await pool.close()


async def test_a_job_of_every_column(store: ApiStore) -> None:
    """What a create answers is what a read shows."""
    new = await new_job(store, key="k", name="n", tags=("a", "b"), timeout_seconds=1.5)
    _, created = await store.insert_job(new, OnConflict.ERROR)
    shown = await store.get_job(new.id)
    assert replace(created, definition=shown.definition) == shown
    assert replace(created.definition, payload=None) == replace(shown.definition, payload=None)
