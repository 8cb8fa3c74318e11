"""A worker's store that is kept waiting, or may only read: nothing is half done or skipped, and it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.errors import StoreUnavailable
from ringcron.models import Arc, Claim
from ringcron.policies import settle
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.claimed import Claimed
from ringcron.store.worker import WorkerStore
from tests.support.jobs import add_job, database_now, row_of, runs_of, skips_of
from tests.support.waiting import until

pytestmark = pytest.mark.store

RING = Arc(lo=0, hi=4095)
OWNER = "w1.00000001"
Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


def make_store(url: str, *, statement_seconds: float) -> WorkerStore:
    clock = SystemClock()
    return WorkerStore(
        url,
        worker_id=OWNER,
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=60.0,
        statement_seconds=statement_seconds,
    )


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[WorkerStore]:
    store = make_store(database_url, statement_seconds=10.0)
    yield store
    await store.close()


async def claim(store: WorkerStore) -> list[Claim]:
    return await store.claim(RING, ["noop"], batch=10, bounds=UNBOUNDED)


async def claim_again(store: WorkerStore) -> list[Claim]:
    """As the claimer does after a claim whose answer never came."""
    try:
        await store.release_unknown_claims([])
        return await claim(store)
    except StoreUnavailable:
        return []


async def set_read_only(connection: Connection, *, on: bool) -> None:
    """For sessions that begin from now on, as on a node that is, or no longer is, a standby."""
    name = sql.Identifier(connection.info.dbname)
    statement = "alter database {} set default_transaction_read_only = " + ("on" if on else "off")
    await connection.execute(sql.SQL(statement).format(name))


async def test_a_job_that_a_locked_table_kept_waiting_is_late_and_not_missed(
    database_url: str, connection: Connection
) -> None:
    """A41, L10, P11: the claim ends within its limit although the server goes on waiting; once the lock is gone
    the tick is run, however late, and no skip is written."""
    anchor = (await database_now(connection)).replace(microsecond=0) - timedelta(hours=2)
    daily = {"every": "P1D", "anchor": anchor.isoformat().replace("+00:00", "Z")}
    job = await add_job(connection, due_in=-7200, scheduled_for=anchor, schedule=daily)
    hasty = make_store(database_url, statement_seconds=0.5)
    async with await psycopg.AsyncConnection.connect(database_url) as locker:
        await locker.execute("lock table jobs in access exclusive mode")
        async with asyncio.timeout(15):
            with pytest.raises(StoreUnavailable):
                await claim(hasty)
        await locker.rollback()
    await hasty.close()

    store = make_store(database_url, statement_seconds=10.0)
    (claimed,) = await until(lambda: claim_again(store))
    (row,) = await store.definitions([claimed])
    assert isinstance(row, Claimed)

    assert (claimed.id, claimed.scheduled_for, claimed.attempt) == (job, anchor, 1)
    assert settle(row.going) is None
    assert await skips_of(connection, job) == []
    await store.close()


async def test_on_a_server_that_takes_no_writes_nothing_is_half_done_and_a_new_session_is_tried(
    database_url: str, connection: Connection, store: WorkerStore
) -> None:
    """A52, P16: neither connection stays with a server that was demoted."""
    held = await add_job(connection, due_in=-60)
    (claimed,) = await claim(store)
    job = await add_job(connection)
    before = await row_of(connection, job)
    await store.close()
    await set_read_only(connection, on=True)

    with pytest.raises(StoreUnavailable):
        await claim(store)
    with pytest.raises(StoreUnavailable):
        await store.renew_leases([claimed])
    assert await row_of(connection, job) == before
    assert await runs_of(connection, job) == []
    await set_read_only(connection, on=False)

    async def renewed() -> bool:
        try:
            return bool((await store.renew_leases([claimed])).held)
        except StoreUnavailable:
            return False

    assert await until(renewed)
    assert [other.id for other in await until(lambda: claim(store))] == [job]
    assert (await row_of(connection, held))["lease_owner"] == OWNER


async def test_a_worker_has_two_connections_however_much_it_asks(store: WorkerStore, connection: Connection) -> None:
    """P19: two hundred workers are four hundred connections and no more."""
    await add_job(connection)
    claims = await claim(store)

    await asyncio.gather(*(claim(store) for _ in range(5)), *(store.renew_leases(claims) for _ in range(5)))

    cursor = await connection.execute(
        "select count(*) from pg_stat_activity where application_name like %s and datname = current_database()",
        (f"{OWNER}%",),
    )
    assert await cursor.fetchone() == (2,)


async def test_a_renewal_whose_answer_was_lost_is_sent_again_and_holds(
    store: WorkerStore, connection: Connection
) -> None:
    """R5: it changes neither generation nor owner, so its own effect cannot make it look like a thief's."""
    job = await add_job(connection)
    claims = await claim(store)

    first = await store.renew_leases(claims)
    again = await store.renew_leases(claims)

    assert first.held == again.held == {(job, claims[0].lease_generation): False}
