"""Many creates whose keys are shared: in one batch, in racing batches, beside single creates."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY

from ringcron.clock import SystemClock
from ringcron.errors import JobAlreadyClaimed, RingcronError, StatementRefused, StoreUnavailable
from ringcron.models import Definition
from ringcron.slots import new_job_id
from ringcron.store.api import SESSION_OPTIONS, ApiStore
from ringcron.store.batching import BatchRefused, create_each
from ringcron.store.creating import Created, Creation, OnConflict, Outcome, Stored
from ringcron.store.keyed import create
from ringcron.store.pool import Pool
from tests.support.jobs import database_now

pytestmark = pytest.mark.store

_SET_STATE = {
    "due": "update jobs set decided_until = decided_until - interval '150 seconds' where key = %s",
    "done": "update jobs set state = 'done', attempt = 1, occurrences = 1 where key = %s",
    "paused": "update jobs set state = 'paused', next_run_at = '9500-01-01T00:00:00Z', pause_reason = 'r' "
    "where key = %s",
    "claimed": "update jobs set state = 'claimed', lease_owner = 'w.1', lease_generation = 4, attempt = 1, "
    "claimed_at = now() - interval '2 seconds', lease_until = now() + interval '1 hour' where key = %s",
    "lapsed": "update jobs set state = 'claimed', lease_owner = 'w.1', lease_generation = 4, attempt = 1, "
    "claimed_at = now() - interval '2 seconds', lease_until = now() - interval '1 second' where key = %s",
    "cancelled": "update jobs set state = 'cancelled' where key = %s",
    "gone": "delete from jobs where key = %s",
}


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    pool = Pool(database_url, application_name="test", max_size=20, seconds=30, options=SESSION_OPTIONS)
    yield pool
    await pool.close()


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


def creation(now: datetime, key: str | None, on_conflict: OnConflict, n: int = 0, *, begun: bool = False) -> Creation:
    """A recurring job that begins days from now, unless it has `begun`; `n` tells it from others."""
    due = now.replace(second=0, microsecond=0) + timedelta(days=1 + n)
    schedule = {"every": "PT1M", "anchor": "2020-01-01T00:00:00Z"} | ({} if begun else {"startAt": due.isoformat()})
    common = Definition(handler="log", payload=None, schedule=schedule, name=f"n{n}", tags=(f"t{n % 3}", "t"))
    return Creation(new_job_id(now), common, None, key, n, now, due, on_conflict)


def deadlocks() -> float:
    return REGISTRY.get_sample_value("ringcron_store_retries_total", {"sqlstate": "40P01"}) or 0.0


def wire(outcome: Outcome) -> tuple[Any, ...]:
    """An outcome, comparable between jobs with other ids."""
    if isinstance(outcome, Stored):
        return (outcome.what, outcome.next_run_at)
    return (type(outcome),)


async def state_of(connection: psycopg.AsyncConnection[Any], prefix: str) -> list[Any]:
    """All that is stored of the jobs whose keys begin so, but for ids and what differs with the number of tries."""
    cursor = await connection.execute(
        "select substr(j.key, 2), j.state, j.next_run_at, j.scheduled_for, j.decided_until >= j.updated_at, j.payload, "
        "  j.name, j.tags, j.attempt, j.occurrences, j.pause_reason, j.lease_owner, k.job_id = j.id, "
        "  array(select t.tag from job_tags t where t.job_id = j.id order by t.tag), "
        "  array(select (s.count > 0, s.reason)::text from skips s where s.job_id = j.id), "
        "  array(select (r.outcome, r.lease_generation)::text from runs r where r.job_id = j.id) "
        "from jobs j left join job_keys k on k.key = j.key where j.key like %s "
        "order by j.key, j.state, j.payload::text",
        (prefix + "%",),
    )
    return await cursor.fetchall()


@pytest.mark.parametrize("seed", range(4))
async def test_a_batch_does_what_its_creates_would_do_one_after_the_other(
    connection: psycopg.AsyncConnection[Any], seed: int
) -> None:
    rng = random.Random(seed)
    before = await database_now(connection) - timedelta(minutes=5)
    keys = [f"{state}{n}" for state in (*_SET_STATE, "free") for n in range(4)]
    for prefix in "ab":
        held = [
            creation(before, prefix + key, OnConflict.ERROR, begun=True) for key in keys if not key.startswith("free")
        ]
        await create_each(connection, held, first_try=True)
        for one in held:
            assert one.key is not None
            await connection.execute(_SET_STATE[one.key[1:-1]].encode(), (one.key,))
    now = await database_now(connection)
    wanted = [(rng.choice(keys), rng.choice(list(OnConflict)), n) for n in range(120)]
    lines = {
        prefix: [creation(now - timedelta(microseconds=n), prefix + key, what, n) for key, what, n in wanted]
        for prefix in "ab"
    }
    together = await create_each(connection, lines["a"], first_try=True)
    singly: list[Outcome] = []
    for line in lines["b"]:
        try:
            what, job = await create(connection, line.new, line.on_conflict, first_try=True)
            singly.append(Stored(what, job.id, job.next_run_at))
        except RingcronError as error:
            singly.append(error)
    assert [wire(outcome) for outcome in together] == [wire(outcome) for outcome in singly]
    assert await state_of(connection, "a") == await state_of(connection, "b")


class Counting(psycopg.AsyncConnection[Any]):
    """A connection that counts the statements sent by `execute`."""

    statements = 0

    async def execute(self, *arguments: Any, **keywords: Any) -> Any:
        self.statements += 1
        return await super().execute(*arguments, **keywords)


@pytest.mark.parametrize("on_conflict", OnConflict)
@pytest.mark.parametrize("distinct", [True, False])
async def test_the_number_of_statements_does_not_grow_with_that_of_the_lines(
    database_url: str, on_conflict: OnConflict, distinct: bool
) -> None:
    async with await Counting.connect(database_url, autocommit=True) as connection:
        now = await database_now(connection)
        keys = [f"k{n if distinct else 0}" for n in range(300)]
        await create_each(connection, [creation(now, key, on_conflict) for key in keys[:2]], first_try=True)
        lines = [creation(now, key, on_conflict, n) for n, key in enumerate(keys)]
        connection.statements = 0
        outcomes = await create_each(connection, lines, first_try=True)
        assert len(outcomes) == 300
        assert connection.statements < 10


async def test_racing_batches_and_single_creates_never_deadlock(
    pool: Pool, connection: psycopg.AsyncConnection[Any]
) -> None:
    now = await database_now(connection)
    store = ApiStore(pool, clock=SystemClock())
    before = deadlocks()
    keys = [f"k{n:03}" for n in range(40)]
    await create_each(connection, [creation(now, key, OnConflict.ERROR) for key in keys[::2]], first_try=True)

    async def batch(turn: int) -> Sequence[Outcome]:
        rng = random.Random(turn)
        shuffled = rng.sample(keys, len(keys)) * 2
        lines = [
            creation(now + timedelta(microseconds=turn), key, rng.choice(list(OnConflict)), n)
            for n, key in enumerate(shuffled)
        ]
        try:
            return await store.insert_jobs(lines, whole=turn % 4 == 0)
        except BatchRefused:
            return []

    async def single(turn: int) -> Outcome:
        one = creation(now, random.Random(turn).choice(keys), OnConflict.REPLACE, turn)
        while True:
            try:
                what, job = await store.insert_job(one.new, one.on_conflict)
                return Stored(what, job.id, job.next_run_at)
            except StoreUnavailable:
                continue  # a busy machine: a caller would ask again, too

    await asyncio.gather(*(batch(turn) for turn in range(8)), *(single(turn) for turn in range(10)))
    assert deadlocks() == before
    cursor = await connection.execute(
        "select count(*), count(distinct j.key), count(distinct k.key) from jobs j join job_keys k on k.job_id = j.id"
    )
    assert await cursor.fetchone() == (40, 40, 40)


async def test_a_job_that_a_worker_holds_is_not_locked(
    database_url: str, connection: psycopg.AsyncConnection[Any]
) -> None:
    now = await database_now(connection)
    await create_each(connection, [creation(now, "k", OnConflict.ERROR)], first_try=True)
    await connection.execute(_SET_STATE["claimed"].encode(), ("k",))
    async with await psycopg.AsyncConnection.connect(database_url) as batch:
        await batch.execute("select 1")  # begins the transaction that is left open
        (outcome,) = await create_each(batch, [creation(now, "k", OnConflict.REPLACE)], first_try=True)
        assert isinstance(outcome, JobAlreadyClaimed)
        await connection.execute("set lock_timeout = '10s'")
        await connection.execute("update jobs set lease_until = now() + interval '1 hour'")


async def test_no_tick_that_was_taken_while_a_replacement_waited_comes_again(
    connection: psycopg.AsyncConnection[Any],
) -> None:
    now = await database_now(connection)
    await create_each(connection, [creation(now, key, OnConflict.ERROR, begun=True) for key in "ab"], first_try=True)
    # What asks read the clock before a worker ran the ticks up to now.
    asked_at = now - timedelta(minutes=3)
    asked = [creation(asked_at, key, OnConflict.REPLACE, begun=True) for key in "ab"]
    asked = [one._replace(scheduled_for=asked_at + timedelta(minutes=1)) for one in asked]
    (stored,) = await create_each(connection, asked[:1], first_try=True)
    assert isinstance(stored, Stored)
    assert stored.next_run_at is not None
    assert stored.next_run_at > now
    what, job = await create(connection, asked[1].new, OnConflict.REPLACE, first_try=True)
    assert (what, job.next_run_at) == (Created.REPLACED, job.scheduled_for)
    cursor = await connection.execute(
        "select bool_and(decided_until > %s and scheduled_for > decided_until) from jobs", (now,)
    )
    assert await cursor.fetchone() == (True,)
    # Tried again, because nobody heard of it, it changes nothing and shows the same.
    assert await create_each(connection, asked[:1], first_try=False) == [stored]


async def test_batches_that_are_halved_within_a_transaction_do_not_deadlock(
    pool: Pool, connection: psycopg.AsyncConnection[Any]
) -> None:
    now = await database_now(connection)
    store = ApiStore(pool, clock=SystemClock())
    before = deadlocks()
    keys = [f"k{n:02}" for n in range(32)]

    async def batch(order: Sequence[str]) -> Sequence[Outcome]:
        lines = [creation(now, key, OnConflict.KEEP) for key in order]
        refused = creation(now, None, OnConflict.ERROR)
        lines.append(refused._replace(scheduled_for=datetime.fromisoformat("1980-01-01T00:00:00Z")))
        return await store.rehearse(lambda within: within.insert_jobs(lines, whole=False), seconds=60)

    for _ in range(3):
        for outcomes in await asyncio.gather(batch(keys), batch(keys[::-1])):
            assert [type(outcome) for outcome in outcomes] == [Stored] * 32 + [StatementRefused]
    assert deadlocks() == before
