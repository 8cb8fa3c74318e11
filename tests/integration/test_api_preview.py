"""POST /schedules/preview, and `?dryRun=true`: what would be, and nothing stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from tests.support.api import ApiCaller, running_api

FUTURE = "2100-01-01T00:00:00Z"


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def counts(connection: psycopg.AsyncConnection[Any]) -> list[int]:
    found = []
    for table in ("jobs", "job_keys", "job_tags", "skips"):
        row = await (await connection.execute(f"select count(*) from {table}".encode())).fetchone()
        assert row is not None
        found.append(row[0])
    return found


async def test_ticks_and_what_clock_changes_do_to_them(api: ApiCaller) -> None:
    preview = await api.post(
        "/schedules/preview",
        {
            "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Madrid"},
            "after": "2027-03-27T01:30:00Z",
            "count": 2,
        },
    )
    assert preview.status == 200
    assert preview.body == {
        "nextRuns": ["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"],
        "marks": [{"at": "2027-03-28T01:00:00Z", "mark": "moved"}],
    }
    twice = await api.post(
        "/schedules/preview",
        {
            "schedule": {"cron": "*/30 2 * * *", "timezone": "Europe/Madrid"},
            "after": "2027-10-30T23:59:00Z",
            "count": 4,
        },
    )
    assert [mark["mark"] for mark in twice["marks"]] == ["first-pass", "first-pass", "second-pass", "second-pass"]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ({"schedule": "*/5 * * * *"}, 10),
        ({"schedule": "*/5 * * * *", "count": 1000}, 1000),
        ({"schedule": {"every": "PT15M"}, "count": 1000}, 1000),
        ({"schedule": {"every": "PT15M", "maxRuns": 3}, "count": 1000}, 3),
        ({"schedule": {"cron": "0 0 29 2 *", "timezone": "Pacific/Chatham"}, "count": 1000}, 1000),
        ({"schedule": {"cron": "0 9 * * *", "endAt": "2027-01-03T09:00:00Z"}, "after": "2027-01-01T00:00:00Z"}, 3),
        ({"schedule": "0 0 1 1 *", "after": "8990-01-01T00:00:00Z", "count": 1000}, 9),
        ({"schedule": "0 9 * * *", "after": None, "count": 2.0}, 2),
    ],
)
async def test_how_many(api: ApiCaller, body: dict[str, Any], count: int) -> None:
    preview = await api.post("/schedules/preview", body)
    assert preview.status == 200
    assert len(preview["nextRuns"]) == count
    assert preview["nextRuns"] == sorted(set(preview["nextRuns"]))


@pytest.mark.parametrize(
    ("body", "code", "faults"),
    [
        ({"schedule": "0 0 30 2 *"}, "schedule-never-fires", {"/schedule/cron": "never-fires"}),
        (
            {"schedule": {"cron": "0 9 * * *", "endAt": "2027-01-01T00:00:00Z"}, "after": "2028-01-01T00:00:00Z"},
            "schedule-never-fires",
            {"/schedule/endAt": "never-fires"},
        ),
        ({"schedule": "0 9 * * * *"}, "validation-failed", None),
        ({"schedule": None}, "validation-failed", {"/schedule": "type"}),
        ({}, "validation-failed", {"/schedule": "required"}),
        ({"schedule": "* * * * *", "count": 0}, "validation-failed", {"/count": "out-of-range"}),
        ({"schedule": "* * * * *", "count": 1001}, "validation-failed", {"/count": "out-of-range"}),
        ({"schedule": "* * * * *", "after": "tomorrow"}, "validation-failed", {"/after": "invalid"}),
        ({"schedule": "* * * * *", "coutn": 1}, "validation-failed", {"/coutn": "unknown-field"}),
    ],
)
async def test_why_not(api: ApiCaller, body: dict[str, Any], code: str, faults: dict[str, str] | None) -> None:
    refused = await api.post("/schedules/preview", body)
    assert (refused.status, refused["code"]) == (422, code)
    if faults is not None:
        assert refused.faults == faults


async def test_a_rehearsal_answers_as_a_create_and_stores_nothing(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    body = {"schedule": {"cron": "0 9 * * *", "timezone": "Europe/Madrid"}, "key": "k", "tags": ["a"], "payload": [1]}
    rehearsed = await api.post("/jobs?dryRun=true", body)
    assert rehearsed.status == 200
    assert "Location" not in rehearsed.headers
    assert await counts(connection) == [0, 0, 0, 0]
    assert (await api.get(f"/jobs/{rehearsed['jobId']}")).status == 404
    created = await api.post("/jobs?dryRun=false", body)
    assert created.status == 201
    own = {"jobId", "slot", "createdAt", "updatedAt"}
    assert {n: v for n, v in rehearsed.body.items() if n not in own} == {
        n: v for n, v in created.body.items() if n not in own
    }


async def test_a_rehearsal_meets_what_the_create_would_meet(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    held = await api.post("/jobs", {"runAt": FUTURE, "key": "k", "payload": 1})
    before = await counts(connection)
    path = "/jobs?dryRun=true"
    taken = await api.post(path, {"runAt": FUTURE, "key": "k"})
    assert (taken.status, taken["code"], taken["jobId"]) == (409, "key-exists", held["jobId"])
    kept = await api.post(path, {"runAt": FUTURE, "key": "k", "onConflict": "keep", "payload": 2})
    assert (kept.status, kept["jobId"], kept["payload"]) == (200, held["jobId"], 1)
    replaced = await api.post(path, {"runAt": FUTURE, "key": "k", "onConflict": "replace", "payload": 2})
    assert (replaced.status, replaced["jobId"], replaced["payload"]) == (200, held["jobId"], 2)
    assert (await api.get(f"/jobs/{held['jobId']}"))["payload"] == 1
    assert await counts(connection) == before
    assert (await api.post(path, {"runAt": "x"})).status == 422
    assert (await api.post("/jobs?dryRun=yes", {"runAt": FUTURE})).faults == {"/dryRun": "type"}
