"""The database away: 503 within seconds, never a 500, and back by itself. And a pool that is only busy stays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from ringcron.clock import SystemClock
from ringcron.store.api import ANSWER_SECONDS
from ringcron.store.connection import Connection, transact
from ringcron.store.pool import Pool
from tests.support.api import Answer, ApiCaller, running_api
from tests.support.servers import OwnPostgres
from tests.support.waiting import until

BODY = {"runAt": "2100-01-01T00:00:00Z"}
ID = "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e"


@pytest.fixture
def postgres(own_postgres: Callable[..., OwnPostgres]) -> OwnPostgres:
    return own_postgres()


@pytest.fixture
async def api(postgres: OwnPostgres) -> AsyncIterator[ApiCaller]:
    async with running_api(postgres.url) as api:
        assert (await api.post("/jobs", BODY)).status == 201
        yield api


async def ask_everything(api: ApiCaller) -> list[Answer]:
    return list(
        await asyncio.gather(
            api.post("/jobs", BODY),
            api.get("/jobs"),
            api.get(f"/jobs/{ID}"),
            api.delete(f"/jobs/{ID}"),
            api.get(f"/jobs/{ID}/runs"),
            api.get(f"/jobs/{ID}/skips"),
            api.get("/shards"),
            api.get("/workers"),
            api.get("/readyz"),
        )
    )


async def created(api: ApiCaller) -> bool:
    return (await api.post("/jobs", BODY)).status == 201


@pytest.mark.parametrize("how", ["stop", "kill", "freeze"])
async def test_the_database_goes_and_comes_back(api: ApiCaller, postgres: OwnPostgres, how: str) -> None:
    await asyncio.to_thread(getattr(postgres, how))
    began = time.monotonic()
    answers = await ask_everything(api)
    assert {answer.status for answer in answers} == {503}
    assert all(answer["code"] == "store-unavailable" and int(answer.headers["Retry-After"]) > 0 for answer in answers)
    assert all("127.0.0.1" not in answer["detail"] for answer in answers)
    assert time.monotonic() - began < 3 * ANSWER_SECONDS
    assert (await api.get("/healthz")).status == 200
    assert (await api.get("/docs")).status == 200
    assert (await api.get("/metrics")).status == 200
    assert (await api.post("/jobs", {"nonsense": 1})).status in (422, 503)
    await asyncio.to_thread(postgres.thaw if how == "freeze" else postgres.start)
    await until(lambda: created(api), seconds=15, what="creates succeed again")
    assert 503 not in {answer.status for answer in await ask_everything(api)}


async def test_A51_a_restart_while_the_api_is_idle_is_not_noticed(api: ApiCaller, postgres: OwnPostgres) -> None:
    await asyncio.gather(*(api.get("/jobs") for _ in range(8)))
    await asyncio.to_thread(postgres.stop)
    await asyncio.to_thread(postgres.start)
    answers = await asyncio.gather(*(api.get("/jobs") for _ in range(8)))
    assert {answer.status for answer in answers} == {200}


async def test_the_api_starts_without_a_database(postgres: OwnPostgres) -> None:
    url = postgres.url
    await asyncio.to_thread(postgres.stop)
    async with running_api(url) as api:
        assert (await api.get("/healthz")).status == 200
        assert (await api.get("/readyz")).status == 503
        await asyncio.to_thread(postgres.start)
        await until(lambda: created(api), seconds=15)


async def backends(connection: Connection) -> set[int]:
    cursor = await connection.execute("select pid from pg_stat_activity where application_name = 'busy'")
    return {row[0] for row in await cursor.fetchall()}


async def test_a_pool_that_is_only_busy_is_not_replaced(database_url: str) -> None:
    pool = Pool(database_url, application_name="busy", max_size=2, seconds=30)

    async def recover_meanwhile() -> None:
        async with pool.connection() as connection:
            before = await backends(connection)
            await pool.recover()
            assert await backends(connection) >= before

    async def work(connection: Connection) -> Any:
        return await (await connection.execute("select pg_backend_pid() from pg_sleep(0.01)")).fetchone()

    async def use() -> Any:
        return await transact(pool, work, repeatable=False, give_up_after=0, clock=SystemClock())

    try:
        results = await asyncio.gather(*(use() for _ in range(50)), recover_meanwhile(), recover_meanwhile())
    finally:
        await pool.close()
    assert len({row for row in results if row is not None}) <= 2


async def test_a_caller_in_the_queue_of_a_replaced_pool_is_served_by_the_new_one(database_url: str) -> None:
    pool = Pool(database_url, application_name="busy", max_size=1, seconds=30)
    try:
        async with pool.connection() as held:
            await held.execute("select 1")
            waiting = [asyncio.create_task(_one(pool)) for _ in range(5)]
            await asyncio.sleep(0)
            pool._in_use = 0  # as if the connection that is held were not there: the pool looks stuck
            await pool.recover()
            pool._in_use = 1
        assert await asyncio.gather(*waiting) == [1] * 5
    finally:
        await pool.close()


async def _one(pool: Pool) -> int:
    async with pool.connection() as connection:
        row = await (await connection.execute("select 1")).fetchone()
        assert row is not None
        return int(row[0])
