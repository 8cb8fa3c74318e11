"""The lag of the moment: counted once a second for everybody, by whoever needs it first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from ringcron.clock import SystemClock
from ringcron.models import PARKED
from ringcron.store import snapshot as snapshot_module
from ringcron.store.api import ApiStore
from ringcron.store.pool import Pool
from tests.support.jobs import add_job, add_many

pytestmark = pytest.mark.store
Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def stores(database_url: str) -> AsyncIterator[list[ApiStore]]:
    """As three API processes have them."""
    pools = [Pool(database_url, application_name=f"api-{number}", max_size=4) for number in range(3)]
    yield [ApiStore(pool, clock=SystemClock()) for pool in pools]
    for pool in pools:
        await pool.close()


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def make_old(connection: Connection, seconds: float = 1.1) -> None:
    await connection.execute("update lag_snapshot set taken_at = taken_at - make_interval(secs => %s)", (seconds,))


async def test_it_says_what_is_late_claimed_dead_and_soon(
    stores: list[ApiStore], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "FRESH_SECONDS", 60.0)
    await add_job(connection, due_in=-5, slot=50)
    await add_job(connection, due_in=-9, slot=50)
    await add_job(connection, due_in=-2, slot=150, handler="other")
    await add_job(connection, due_in=-60, slot=10, handler="nobody")
    await add_job(connection, due_in=30)
    await add_job(connection, due_in=90)
    claimed = await add_job(connection, due_in=-3, slot=7)
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w.1', lease_until = now() + interval '10 s', "
        "claimed_at = now() - interval '3 s' where id = %s",
        (claimed,),
    )
    dead = await add_job(connection)
    await connection.execute("update jobs set state = 'dead', next_run_at = %s where id = %s", (PARKED, dead))
    snapshot = await stores[0].snapshot(["noop", "other"])
    assert [(late.handler, late.slot, late.due) for late in snapshot.lag.slots] == [("noop", 50, 2), ("other", 150, 1)]
    assert 9 <= snapshot.lag.slots[0].lag_seconds < 60
    assert [(one.handler, one.due) for one in snapshot.waiting] == [("nobody", 1)]
    assert (snapshot.due, snapshot.due_soon, snapshot.dead, snapshot.running) == (3, 1, 1, 1)
    assert 0 < snapshot.claims["w.1"].lapses_in_seconds <= 10
    assert (snapshot.pace.due[-1], sum(snapshot.pace.started)) == (3, 1)
    # The others read the same, as it was written down.
    read = await stores[1].snapshot(["noop", "other"])
    assert read.taken_at == snapshot.taken_at
    assert (read.waiting, read.pace, read.due_soon, read.dead) == (
        snapshot.waiting,
        snapshot.pace,
        snapshot.due_soon,
        snapshot.dead,
    )


async def test_it_is_counted_once_however_many_look(stores: list[ApiStore], connection: Connection) -> None:
    await stores[0].snapshot(["noop"])
    for _ in range(3):
        taken = {(await stores[0].snapshot(["noop"])).taken_at}
        await make_old(connection)
        began = time.monotonic()
        looks = await asyncio.gather(*(store.snapshot(["noop"]) for store in stores * 5))
        taken |= {look.taken_at for look in looks}
        # The old one, for those that did not wait, and one for each second that it took.
        assert len(taken) <= 2 + (time.monotonic() - began)


async def test_whoever_counts_and_dies_holds_nobody_up(stores: list[ApiStore], connection: Connection) -> None:
    first = await stores[0].snapshot(["noop"])
    await make_old(connection)
    async with connection.transaction(force_rollback=True):
        await connection.execute("select from lag_snapshot for update")
        assert (await stores[1].snapshot(["noop"])).taken_at == first.taken_at  # the old one, at once
    assert (await stores[1].snapshot(["noop"])).taken_at > first.taken_at


async def test_it_comes_back_after_a_crash_of_the_database(stores: list[ApiStore], connection: Connection) -> None:
    await stores[0].snapshot(["noop"])
    await connection.execute("truncate lag_snapshot")  # what a crash does to an unlogged table
    await add_job(connection, due_in=-5)
    assert (await stores[0].snapshot(["noop"])).due == 1
    await connection.execute("update lag_snapshot set document = '{\"another\": 1}', taken_at = '2000-01-01'")
    assert (await stores[0].snapshot(["noop"])).due == 1


async def test_counts_are_capped(
    stores: list[ApiStore], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "COUNTED", 100)
    monkeypatch.setattr(snapshot_module, "WAITING_COUNTED", 50)
    await add_many(connection, 150, due_in=-5)
    await add_job(connection, due_in=-500, slot=77)
    await add_many(connection, 60, handler="nobody")
    snapshot = await stores[0].snapshot(["noop"])
    assert snapshot.capped
    assert snapshot.due == 100
    assert max(late.lag_seconds for late in snapshot.lag.slots) >= 500
    assert snapshot.waiting[0].due == 50
