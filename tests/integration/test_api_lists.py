"""GET /jobs: keyset pages that see each job once, filters, cursors, and the moving view by time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from ringcron.models import PARKED
from tests.support.api import ApiCaller, running_api
from tests.support.days import carve_days
from tests.support.jobs import add_job, add_many, database_now

pytestmark = pytest.mark.store

DAY = 86400.0


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await carve_days(connection, "jobs", await database_now(connection), before=3, after=3)
        yield connection


@pytest.fixture
async def api(connection: object, database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


async def walk(api: ApiCaller, limit: int, **query: str) -> list[dict[str, Any]]:
    """Every job of a list, page by page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await api.get("/jobs", limit=limit, **query, **cursor)
        assert page.status == 200, page
        assert len(page["items"]) <= limit
        found += page["items"]
        if page["nextCursor"] is None:
            return found
        assert len(page["items"]) == limit
        cursor = {"cursor": page["nextCursor"]}


def ids_of(jobs: list[dict[str, Any]]) -> list[str]:
    return [job["jobId"] for job in jobs]


async def test_A59_ten_thousand_jobs_of_one_second_are_each_seen_once(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    await add_many(connection, 10_000, due_in=3600)
    walking = asyncio.create_task(walk(api, 100))
    for _ in range(20):  # others come, move and end meanwhile
        await add_many(connection, 10, due_in=-DAY)
        await connection.execute(
            "update jobs set next_run_at = next_run_at + interval '1 day', updated_at = now() "
            "where id in (select id from jobs where next_run_at > now() limit 50)"
        )
    seen = ids_of(await walking)
    assert len(seen) == len(set(seen)) >= 10_000
    assert seen == sorted(seen, reverse=True)
    cursor = await connection.execute("select id::text from jobs where scheduled_for > now() + interval '1 minute'")
    assert {row[0] for row in await cursor.fetchall()} <= set(seen)


async def test_newest_first(api: ApiCaller) -> None:
    made = [(await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z"}))["jobId"] for _ in range(5)]
    assert ids_of(await walk(api, 2)) == sorted(made, reverse=True)
    assert ids_of((await api.get("/jobs", limit=5)).body["items"]) == sorted(made, reverse=True)
    assert (await api.get("/jobs", limit=5))["nextCursor"] is None


async def test_the_payload_is_shown_when_asked_for(api: ApiCaller) -> None:
    await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z", "payload": [1, {"a": "ä"}]})
    assert "payload" not in (await api.get("/jobs"))["items"][0]
    for query in ({}, {"state": "due"}, {"order": "nextRunAt"}):
        assert (await api.get("/jobs", include="payload", **query))["items"][0]["payload"] == [1, {"a": "ä"}]


@pytest.fixture
async def zoo(connection: psycopg.AsyncConnection[Any]) -> dict[str, str]:
    """One job of each kind, by a name for it; a day apart where that matters."""
    zoo = {
        "overdue": await add_job(connection, due_in=-2 * DAY, handler="a"),
        "late": await add_job(connection, due_in=-10, handler="b"),
        "soon": await add_job(connection, due_in=600, handler="a", name="same"),
        "far": await add_job(connection, due_in=30 * DAY, handler="a"),
        "claimed": await add_job(connection, due_in=-5, handler="b"),
        "paused": await add_job(connection, due_in=-5, handler="a", name="same"),
        "dead": await add_job(connection, due_in=-5, handler="b"),
        "done": await add_job(connection, due_in=-DAY, handler="a", name="same", state="done"),
        "cancelled": await add_job(connection, due_in=-5, handler="b", state="cancelled"),
    }
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w.1', lease_generation = 1, claimed_at = now(), "
        "lease_until = now() + interval '1 minute' where id = %s",
        (zoo["claimed"],),
    )
    for state in ("paused", "dead"):
        await connection.execute(
            "update jobs set state = %s, next_run_at = %s where id = %s", (state, PARKED, zoo[state])
        )
    for name in ("late", "far", "dead", "done"):
        await connection.execute("insert into job_tags values ('t', %s)", (zoo[name],))
    return {name: str(job_id) for name, job_id in zoo.items()}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "cancelled done dead paused claimed far soon late overdue"),
        ({"state": "due"}, "far soon late overdue"),
        ({"state": "claimed"}, "claimed"),
        ({"state": "paused"}, "paused"),
        ({"state": "dead"}, "dead"),
        ({"state": "done"}, "done"),
        ({"state": "cancelled"}, "cancelled"),
        ({"handler": "a"}, "done paused far soon overdue"),
        ({"handler": "a", "state": "due"}, "far soon overdue"),
        ({"handler": "nobody"}, ""),
        ({"name": "same"}, "done paused soon"),
        ({"name": "same", "handler": "a", "state": "paused"}, "paused"),
        ({"tag": "t"}, "done dead far late"),
        ({"tag": "t", "state": "due"}, "far late"),
        ({"tag": "t", "handler": "b"}, "dead late"),
        ({"tag": "other"}, ""),
        ({"dueBefore": "now"}, "claimed late overdue"),
        ({"dueAfter": "now"}, "far soon"),
        ({"dueAfter": "now", "tag": "t"}, "far"),
        ({"dueAfter": "now", "dueBefore": "tomorrow"}, "soon"),
        ({"dueBefore": "now", "state": "due"}, "late overdue"),
        ({"dueBefore": "now", "state": "done"}, ""),
        ({"dueAfter": "tomorrow", "dueBefore": "now"}, ""),
        ({"order": "nextRunAt"}, "overdue late claimed soon far"),
        ({"order": "nextRunAt", "state": "claimed"}, "claimed"),
        ({"order": "nextRunAt", "state": "dead"}, ""),
        ({"order": "nextRunAt", "handler": "a"}, "overdue soon far"),
        ({"order": "nextRunAt", "tag": "t"}, "late far"),
        ({"order": "nextRunAt", "name": "same"}, "soon"),
        ({"order": "nextRunAt", "dueAfter": "now"}, "soon far"),
    ],
)
async def test_filters(
    api: ApiCaller,
    connection: psycopg.AsyncConnection[Any],
    zoo: dict[str, str],
    query: dict[str, str],
    expected: str,
) -> None:
    now = await database_now(connection)
    instants = {"now": now.isoformat(), "tomorrow": (now + timedelta(days=1)).isoformat()}
    asked = {name: instants.get(value, value) for name, value in query.items()}
    wanted = [zoo[name] for name in expected.split()]
    if "order" not in query:
        wanted.sort(reverse=True)  # ids of one millisecond are in no order of their making
    for limit in (1, 2, 100):
        assert ids_of(await walk(api, limit, **asked)) == wanted


async def test_by_time_jobs_of_one_instant_are_each_seen_once(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    for due_in in (-2 * DAY, 60, 5 * DAY, 60 * DAY):
        await add_many(connection, 70, due_in=due_in)
    jobs = await walk(api, 30, order="nextRunAt")
    assert len(set(ids_of(jobs))) == len(jobs) == 280
    assert [job["nextRunAt"] for job in jobs] == sorted(job["nextRunAt"] for job in jobs)


@pytest.mark.parametrize("cursor", ["x", "AAAA", "%00", "é", "a" * 2000, ""])
async def test_a_cursor_that_was_made_up(api: ApiCaller, cursor: str) -> None:
    refused = await api.get("/jobs", cursor=cursor)
    assert (refused.status, refused["code"]) == (400, "invalid-cursor")


async def test_a_cursor_belongs_to_its_filters(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    await add_many(connection, 5, due_in=60)
    cursor = (await api.get("/jobs", limit=2, handler="noop"))["nextCursor"]
    assert (await api.get("/jobs", limit=3, handler="noop", cursor=cursor)).status == 200
    assert (await api.get("/jobs", limit=2, cursor=cursor)).status == 400
    assert (await api.get("/jobs", limit=2, handler="noop", order="nextRunAt", cursor=cursor)).status == 400
    assert (await api.get("/workers", cursor=cursor)).status == 400


async def test_every_fault_of_a_query_at_once(api: ApiCaller) -> None:
    refused = await api.get("/jobs", limit=501, state="asleep", dueBefore="now", tagg="x", order="name", include="all")
    assert refused.status == 422
    assert refused.faults == {
        "/limit": "out-of-range",
        "/state": "invalid",
        "/dueBefore": "invalid",
        "/tagg": "unknown-parameter",
        "/order": "invalid",
        "/include": "invalid",
    }
    twice = await api.call("GET", "/jobs?state=due&state=dead")
    assert (twice.status, twice.faults) == (422, {"/state": "invalid"})
    nul = await api.call("GET", "/jobs?name=a%00b")
    assert (nul.status, nul.faults) == (422, {"/name": "nul-character"})
    for path in ("/jobs/019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e?x=1", "/shards?limit=1"):
        assert (await api.call("GET", path)).status == 422
