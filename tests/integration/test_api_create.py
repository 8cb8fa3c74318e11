"""POST /jobs: one endpoint for both kinds, every fault at once, and keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from ringcron_api.openapi import examples
from tests.support.api import ApiCaller, running_api
from tests.support.jobs import database_now, row_of, skips_of

FUTURE = "2100-01-01T00:00:00Z"


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def count(connection: psycopg.AsyncConnection[Any], table: str = "jobs") -> int:
    row = await (await connection.execute(f"select count(*) from {table}".encode())).fetchone()
    assert row is not None
    return int(row[0])


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_a_one_off(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    created = await api.post("/jobs", {"runAt": "2100-01-01T02:00:00+02:00", "payload": {"a": [1, 2.5, None]}})
    assert created.status == 201
    assert created.headers["Location"] == f"/jobs/{created['jobId']}"
    assert created["state"] == "due"
    assert created["runAt"] == created["nextRunAt"] == created["scheduledFor"] == FUTURE
    assert created["nextRuns"] == [FUTURE]
    assert created["payload"] == {"a": [1, 2.5, None]}
    assert "schedule" not in created.body
    shown = await api.get(f"/jobs/{created['jobId']}")
    assert shown.body == {name: value for name, value in created.body.items() if name != "nextRuns"}
    row = await row_of(connection, created["jobId"])
    assert (row["state"], row["attempt"], row["cause"], row["tzdata"]) == ("due", 0, "schedule", None)
    assert row["decided_until"] == row["created_at"]


async def test_an_instant_in_the_past_is_due_now_and_keeps_its_name(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    before = await database_now(connection)
    created = await api.post("/jobs", {"runAt": "2001-01-01T00:00:00Z"})
    after = await database_now(connection)
    assert created["scheduledFor"] == created["runAt"] == "2001-01-01T00:00:00Z"
    # The clock is read up to a second before and carried forward, which costs no more than a round trip.
    assert before - timedelta(seconds=0.5) <= at(created["nextRunAt"]) <= after + timedelta(seconds=0.5)
    assert created["nextRuns"] == [created["nextRunAt"]]


async def test_cron_in_a_zone(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    created = await api.post("/jobs", {"schedule": {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"}})
    assert created["schedule"] == {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"}
    assert "runAt" not in created.body
    assert len(created["nextRuns"]) == 10
    assert all(text.endswith("T00:00:00Z") for text in created["nextRuns"])
    assert created["nextRuns"][0] == created["nextRunAt"] == created["scheduledFor"]
    row = await row_of(connection, created["jobId"])
    assert row["tzdata"]
    assert row["created_at"] < row["scheduled_for"]


async def test_a_bare_text_is_cron_in_utc(api: ApiCaller) -> None:
    created = await api.post("/jobs", {"schedule": "30 4 1 * *"})
    assert created["schedule"] == {"cron": "30 4 1 * *", "timezone": "UTC"}
    assert created["nextRunAt"].endswith("-01T04:30:00Z")


async def test_an_interval_is_anchored_at_creation(api: ApiCaller) -> None:
    created = await api.post("/jobs", {"schedule": {"every": "PT15M"}})
    assert created["schedule"]["anchor"] == created["createdAt"]
    assert at(created["nextRunAt"]) - at(created["createdAt"]) == timedelta(minutes=15)


async def test_max_runs_bounds_what_is_shown(api: ApiCaller) -> None:
    created = await api.post("/jobs", {"schedule": {"every": "PT1H", "maxRuns": 3.0}})
    assert created["schedule"]["maxRuns"] == 3
    assert len(created["nextRuns"]) == 3


async def test_everything_at_once(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    body = {
        "runAt": FUTURE,
        "payload": None,
        "handler": "http",
        "key": "k",
        "name": "a name – with a dash",
        "tags": ["b", "a", "b"],
        "retry": {"maxAttempts": 7, "minBackoff": "PT0S", "maxBackoff": "P1D", "multiplier": 1.5, "maxLost": 1},
        "timeout": "PT1.5S",
        "overlap": "cancel_other",
        "catchup": "all",
        "catchupWindow": "PT6H",
        "jitter": "PT1M",
        "onExhausted": "dead",
        "onConflict": "error",
    }
    created = await api.post("/jobs", body)
    assert created.status == 201
    as_given = body.keys() - {"onConflict", "tags"}
    assert {name: created[name] for name in as_given} == {name: body[name] for name in as_given}
    assert created["tags"] == ["b", "a"]
    assert timedelta(0) <= at(created["nextRunAt"]) - at(FUTURE) < timedelta(minutes=1)
    assert created["scheduledFor"] == FUTURE
    assert await count(connection, "job_tags") == 2


@pytest.mark.parametrize("name", list(examples.CREATE_BODIES))
async def test_the_examples_of_the_document(api: ApiCaller, name: str) -> None:
    assert (await api.post("/jobs", examples.CREATE_BODIES[name])).status == 201


async def test_all_faults_at_once_and_nothing_is_stored(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    body = {
        "runAt": "tomorrow",
        "schedule": {"cron": "* * * *", "timezone": "Europe/Madird", "maxRunz": 1},
        "handler": "no spaces",
        "tags": ["", 7],
        "retry": {"maxAttempts": 0, "minBackof": "PT1S"},
        "timeout": "P1M",
        "overlap": "queue",
        "jitter": "PT25H",
    }
    refused = await api.post("/jobs", body)
    assert refused.status == 422
    assert refused["code"] == "validation-failed"
    assert refused.faults == {
        "": "invalid",
        "/runAt": "invalid",
        "/schedule/cron": refused.faults["/schedule/cron"],
        "/schedule/timezone": "unknown-timezone",
        "/schedule/maxRunz": "unknown-field",
        "/handler": "invalid",
        "/tags/0": "out-of-range",
        "/tags/1": "type",
        "/retry/maxAttempts": "out-of-range",
        "/retry/minBackof": "unknown-field",
        "/timeout": "invalid",
        "/overlap": "invalid",
        "/jitter": "out-of-range",
    }
    details = {fault["pointer"]: fault["detail"] for fault in refused["errors"]}
    assert "did you mean minBackoff?" in details["/retry/minBackof"]
    assert "Europe/Madrid" in details["/schedule/timezone"]
    assert await count(connection) == 0


async def test_a_schedule_that_never_fires(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    for schedule in ("0 0 30 2 *", {"every": "PT1H", "endAt": "2020-01-01T00:00:00Z"}):
        refused = await api.post("/jobs", {"schedule": schedule})
        assert (refused.status, refused["code"]) == (422, "schedule-never-fires")
    assert await count(connection) == 0


async def test_a_key_is_held(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    first = await api.post("/jobs", {"runAt": FUTURE, "key": "k"})
    second = await api.post("/jobs", {"runAt": FUTURE, "key": "k"})
    assert (second.status, second["code"], second["jobId"]) == (409, "key-exists", first["jobId"])
    kept = await api.post("/jobs", {"runAt": "2200-01-01T00:00:00Z", "key": "k", "onConflict": "keep"})
    assert (kept.status, kept["jobId"], kept["runAt"]) == (200, first["jobId"], FUTURE)
    assert kept["nextRuns"] == [FUTURE]
    assert await count(connection) == 1


async def test_a_key_is_replaced(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    first = await api.post("/jobs", {"schedule": "0 9 * * *", "key": "k", "tags": ["a", "b"], "name": "n"})
    body = {"runAt": FUTURE, "key": "k", "onConflict": "replace", "tags": ["b", "c"], "payload": [1]}
    second = await api.post("/jobs", body)
    assert (second.status, second["jobId"], second["slot"]) == (200, first["jobId"], first["slot"])
    assert (second["runAt"], second["nextRunAt"], second["payload"]) == (FUTURE, FUTURE, [1])
    assert second["name"] is None
    assert "schedule" not in second.body
    assert second["createdAt"] == first["createdAt"] < second["updatedAt"]
    assert (await row_of(connection, first["jobId"]))["revision"] == 2
    assert [len((await api.get("/jobs", tag=tag))["items"]) for tag in "abc"] == [0, 1, 1]
    assert (await count(connection), await count(connection, "job_keys")) == (1, 1)


async def test_a_replaced_job_has_the_jitter_of_its_own_id(api: ApiCaller) -> None:
    body = {"runAt": FUTURE, "key": "k", "onConflict": "replace", "jitter": "PT24H"}
    first = await api.post("/jobs", body)
    assert first["nextRunAt"] > FUTURE
    assert (await api.post("/jobs", body))["nextRunAt"] == first["nextRunAt"]


async def test_a_job_that_is_done_is_due_again_when_replaced_and_keeps_its_key(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    first = await api.post("/jobs", {"runAt": "2020-01-01T00:00:00Z", "key": "k"})
    await connection.execute("update jobs set state = 'done', attempt = 1, occurrences = 1")
    assert (await api.post("/jobs", {"runAt": FUTURE, "key": "k"})).status == 409
    again = await api.post("/jobs", {"runAt": FUTURE, "key": "k", "onConflict": "replace"})
    assert (again.status, again["jobId"], again["state"], again["attempt"]) == (200, first["jobId"], "due", 0)
    assert (await api.post("/jobs", {"runAt": FUTURE, "key": "k"}))["jobId"] == first["jobId"]


async def test_a_claimed_job_is_not_replaced(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    first = await api.post("/jobs", {"runAt": "2020-01-01T00:00:00Z", "key": "k"})
    await claim(connection, "1 minute")
    refused = await api.post("/jobs", {"runAt": FUTURE, "key": "k", "onConflict": "replace"})
    assert (refused.status, refused["code"], refused["runId"]) == (409, "job-claimed", f"{first['jobId']}.4")
    assert (await api.get(f"/jobs/{first['jobId']}"))["state"] == "claimed"


async def test_a_lapsed_lease_is_reaped_when_the_job_is_replaced(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    first = await api.post("/jobs", {"runAt": "2020-01-01T00:00:00Z", "key": "k"})
    await claim(connection, "-1 second")
    replaced = await api.post("/jobs", {"runAt": FUTURE, "key": "k", "onConflict": "replace"})
    assert (replaced.status, replaced["state"], replaced["nextRunAt"]) == (200, "due", FUTURE)
    runs = (await api.get(f"/jobs/{first['jobId']}/runs")).body
    assert [(run["leaseGeneration"], run["outcome"], run["workerId"]) for run in runs] == [(4, "lost", "w.1")]


async def test_ticks_that_passed_undecided_leave_a_skip_when_the_job_is_replaced(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    first = await api.post("/jobs", {"schedule": {"every": "PT1M", "anchor": "2020-01-01T00:00:00Z"}, "key": "k"})
    await connection.execute("update jobs set decided_until = decided_until - interval '3 minutes'")
    await api.post("/jobs", {"runAt": FUTURE, "key": "k", "onConflict": "replace"})
    (skip,) = await skips_of(connection, first["jobId"])
    assert (skip["count"], skip["reason"]) == (3, "rescheduled")
    assert skip["last"] - skip["first"] == timedelta(minutes=2)
    assert skip["last"] <= (await row_of(connection, first["jobId"]))["decided_until"]


async def test_a_key_of_a_cancelled_or_vanished_job_is_free(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    first = await api.post("/jobs", {"runAt": FUTURE, "key": "k"})
    assert (await api.delete(f"/jobs/{first['jobId']}")).status == 204
    second = await api.post("/jobs", {"runAt": FUTURE, "key": "k"})
    assert second.status == 201
    await connection.execute("delete from jobs where id = %s", (second["jobId"],))
    third = await api.post("/jobs", {"runAt": FUTURE, "key": "k", "onConflict": "replace"})
    assert third.status == 201
    assert len({job["jobId"] for job in (first, second, third)}) == 3
    # An older version left the key behind: the job it names is cancelled.
    await connection.execute("update jobs set state = 'cancelled' where id = %s", (third["jobId"],))
    assert (await api.post("/jobs", {"runAt": FUTURE, "key": "k", "onConflict": "keep"})).status == 201


async def test_A55_many_creates_with_one_key_make_one_job(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    body = {"runAt": FUTURE, "key": "k", "onConflict": "keep"}
    answers = await asyncio.gather(*(api.post("/jobs", body) for _ in range(50)))
    assert sorted(answer.status for answer in answers) == [200] * 49 + [201]
    assert len({answer["jobId"] for answer in answers}) == 1
    assert await count(connection) == 1


async def claim(connection: psycopg.AsyncConnection[Any], lease: str) -> None:
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w.1', lease_generation = 4, attempt = 1, "
        "claimed_at = now() - interval '2 seconds', lease_until = now() + %s::interval",
        (lease,),
    )
