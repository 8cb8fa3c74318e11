"""The audit of jobs: who did what, written with the change, shown, and ended by upkeep; issue 3, point 8."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from ringcron.store.pool import Pool
from ringcron_api.key_ring import BOUND_SECONDS
from tests.support.api import ApiCaller, running_api
from tests.support.jobs import add_job
from tests.support.keys import Keys, MovableClock, bearer, keys_of
from tests.support.layouts import make_upkeep

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
async def keys(database_url: str) -> AsyncIterator[Keys]:
    async with keys_of(database_url) as keys:
        yield keys


@pytest.fixture
async def api(database_url: str, clock: MovableClock) -> AsyncIterator[ApiCaller]:
    """On loopback, so that it is open as long as there is no key."""
    async with running_api(database_url, clock=clock) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def test_who_cancelled_a_job_is_noted_with_the_cancel_and_not_without(
    api: ApiCaller, keys: Keys, clock: MovableClock, connection: Connection
) -> None:
    by_nobody = await add_job(connection, due_in=3600)
    assert (await api.delete(f"/jobs/{by_nobody}")).status == 204
    key = await keys.add(name="billing")
    clock.skip(BOUND_SECONDS)
    headers = {**bearer(key), "X-Request-Id": "r-1"}
    by_key, claimed = await add_job(connection, due_in=3600), await add_job(connection)
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w', claimed_at = now(), "
        "lease_until = now() + interval '1 hour' where id = %s",
        (claimed,),
    )
    statuses = [
        (await api.call("DELETE", f"/jobs/{job_id}", headers=headers)).status
        for job_id in (by_key, by_key, claimed, uuid4())
    ]
    assert statuses == [204, 204, 409, 404]
    noted = await connection.execute(
        "select job_id, action, key_id, key_name, request_id, at > now() - interval '1 minute' "
        "from audit_log order by id"
    )
    first, *rest = await noted.fetchall()
    assert first[:4] == (by_nobody, "cancel", None, None)
    assert rest == [(by_key, "cancel", key.id, "billing", "r-1", True)]


async def test_the_audit_of_a_job_says_who_did_what_and_outlives_it(
    api: ApiCaller, keys: Keys, connection: Connection
) -> None:
    ops, billing = await keys.add(name="ops"), await keys.add(name="billing")
    job_id = await add_job(connection, due_in=3600)
    path = f"/jobs/{job_id}"
    paused = await api.call("PATCH", path, json={"paused": True, "pauseReason": "month's end"}, headers=bearer(ops))
    assert (paused.status, paused["pausedBy"]) == (200, f"ops (key {ops.id})")
    assert (await api.call("PATCH", path, json={"paused": False}, headers=bearer(ops))).status == 200
    assert (await api.call("PATCH", path, json={"name": "n"}, headers=bearer(billing))).status == 200
    assert (await api.call("PATCH", path, json={"name": 1}, headers=bearer(billing))).status == 422
    assert (await api.call("POST", f"{path}/trigger", headers=bearer(billing))).status == 202
    assert (await api.call("POST", f"{path}/redrive", headers=bearer(billing))).status == 409
    assert (await api.call("DELETE", path, headers=bearer(ops))).status == 204
    await connection.execute("delete from jobs where id = %s", (job_id,))

    whole = await api.call("GET", f"{path}/audit", headers=bearer(billing))
    told = [(entry["action"], entry["keyName"], entry["keyId"]) for entry in whole.body]
    assert told == [
        ("cancel", "ops", ops.id),
        ("trigger", "billing", billing.id),
        ("patch", "billing", billing.id),
        ("resume", "ops", ops.id),
        ("pause", "ops", ops.id),
    ]
    assert whole.body[4]["detail"] == {"fields": ["pauseReason", "paused"]}
    pages, link = [], f"{path}/audit?limit=2"
    while link:
        page = await api.call("GET", link, headers=bearer(billing))
        pages.append(page.body)
        link = page.headers.get("Link", "").partition(">")[0].removeprefix("<")
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [entry for page in pages for entry in page] == whole.body
    assert (await api.call("GET", f"/jobs/{uuid4()}/audit", headers=bearer(billing))).status == 404


async def test_upkeep_keeps_the_audit_as_long_as_runs(database_url: str, connection: Connection) -> None:
    for days in (0, 29, 31, 400):
        await connection.execute(
            "insert into audit_log (action, at) values ('cancel', now() - make_interval(days => %s))", (days,)
        )
    await connection.execute(
        "insert into audit_log (action, at) select 'patch', now() - interval '1 year' from generate_series(1, 2500)"
    )
    pool = Pool(database_url, application_name="upkeep", max_size=2, seconds=60)
    try:
        done = await make_upkeep(pool, keep_runs_seconds=30 * 86400).step()
    finally:
        await pool.close()
    assert "audit_log: swept 2502 old entries" in done
    (row,) = await (await connection.execute("select count(*) from audit_log")).fetchall()
    assert row == (2,)
