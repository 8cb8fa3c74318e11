"""PATCH /jobs/{jobId}: a merge patch by the rules of a create, pauses, and what waits for a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import RunOutcome
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.worker import WHOLE_RING, WorkerStore
from ringcron_api.openapi import examples
from tests.support.api import Answer, ApiCaller, running_api
from tests.support.completing import finish
from tests.support.jobs import add_job, row_of, skips_of

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]
FUTURE = "2100-01-01T00:00:00Z"
HOURLY = {"every": "PT1H", "anchor": "2020-01-01T00:30:00Z"}


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[WorkerStore]:
    clock = SystemClock()
    worker = WorkerStore(
        database_url,
        worker_id="w-1.00000001",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=60.0,
        statement_seconds=30.0,
    )
    yield worker
    await worker.close()


async def created(api: ApiCaller, **body: Any) -> str:
    answer = await api.post("/jobs", body)
    assert answer.status == 201, answer.body
    job_id: str = answer["jobId"]
    return job_id


async def patched(api: ApiCaller, job_id: object, patch: Any, status: int = 200, **query: str) -> Answer:
    answer = await api.patch(f"/jobs/{job_id}", patch, **query)
    assert answer.status == status, answer.body
    return answer


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_what_is_not_named_stays_and_null_is_the_default(api: ApiCaller, connection: Connection) -> None:
    job_id = await created(
        api,
        runAt=FUTURE,
        handler="http",
        name="n",
        tags=["a", "b"],
        timeout="PT5S",
        overlap="buffer_one",
        retry={"maxAttempts": 9, "maxLost": 7},
        payload={"keep": 1, "drop": 2, "deep": {"x": 1, "y": [1, {"z": None}]}},
        key="k",
    )
    before = (await api.get(f"/jobs/{job_id}")).body
    patch = {
        "name": None,
        "tags": ["b", "c"],
        "timeout": None,
        "retry": {"maxAttempts": None, "minBackoff": "PT1S"},
        "payload": {"drop": None, "deep": {"x": 2}, "new": [None]},
        "handler": None,
        "jitter": "PT0S",
    }

    after = await patched(api, job_id, patch)

    changed = {
        "name": None,
        "tags": ["b", "c"],
        "timeout": None,
        "retry": {**before["retry"], "maxAttempts": 5, "minBackoff": "PT1S"},
        "payload": {"keep": 1, "deep": {"x": 2, "y": [1, {"z": None}]}, "new": [None]},
        "handler": "default",
        "updatedAt": after["updatedAt"],
    }
    assert after.body == {**before, **changed}
    assert (await api.get(f"/jobs/{job_id}")).body == after.body
    tags = await (await connection.execute("select tag from job_tags order by tag")).fetchall()
    assert tags == [("b",), ("c",)]


async def test_an_empty_patch_changes_nothing(api: ApiCaller) -> None:
    job_id = await created(api, schedule=HOURLY, payload={"a": [1, None, "x"]})
    before = (await api.get(f"/jobs/{job_id}")).body
    after = await patched(api, job_id, {})
    assert {**after.body, "updatedAt": None} == {**before, "updatedAt": None}


@pytest.mark.parametrize("payload", [None, 5, [1], {"b": 2}])
async def test_a_payload_takes_the_place_of_one_that_is_no_object(api: ApiCaller, payload: Any) -> None:
    job_id = await created(api, runAt=FUTURE, payload=[{"a": 1}])
    assert (await patched(api, job_id, {"payload": payload}))["payload"] == payload


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", "application/json"])
async def test_both_media_types(api: ApiCaller, content_type: str) -> None:
    job_id = await created(api, runAt=FUTURE)
    headers = {"Content-Type": content_type}
    answer = await api.call("PATCH", f"/jobs/{job_id}", data=b'{"name": "x"}', headers=headers)
    assert (answer.status, answer["name"]) == (200, "x")


async def test_another_media_type_is_refused(api: ApiCaller) -> None:
    job_id = await created(api, runAt=FUTURE)
    headers = {"Content-Type": "application/json-patch+json"}
    answer = await api.call("PATCH", f"/jobs/{job_id}", data=b"[]", headers=headers)
    assert (answer.status, answer["code"]) == (415, "unsupported-media-type")


async def test_all_faults_at_once_and_nothing_is_changed(api: ApiCaller) -> None:
    job_id = await created(api, runAt=FUTURE, name="old")
    before = (await api.get(f"/jobs/{job_id}")).body
    patch = {
        "name": "new",
        "schedule": {"cron": "* * * *", "timezone": "Europe/Madird"},
        "retry": {"maxAttempts": 0, "minBackof": "PT1S"},
        "tags": ["", 7],
        "jitter": "P2D",
        "key": "k",
        "onConflict": "keep",
        "paused": "yes",
        "pauseReason": "why",
        "handlr": "http",
        "state": "due",
    }
    refused = await patched(api, job_id, patch, 422)
    assert refused.faults == {
        "": "invalid",
        "/schedule/cron": refused.faults["/schedule/cron"],
        "/schedule/timezone": "unknown-timezone",
        "/retry/maxAttempts": "out-of-range",
        "/retry/minBackof": "unknown-field",
        "/tags/0": "out-of-range",
        "/tags/1": "type",
        "/jitter": "out-of-range",
        "/key": "read-only",
        "/onConflict": "read-only",
        "/paused": "type",
        "/pauseReason": "invalid",
        "/handlr": "unknown-field",
        "/state": "unknown-field",
    }
    near = next(fault["detail"] for fault in refused["errors"] if fault["pointer"] == "/handlr")
    assert "did you mean handler?" in near
    assert (await api.get(f"/jobs/{job_id}")).body == before


@pytest.mark.parametrize(
    ("patch", "faults"),
    [
        ([], {"": "type"}),
        ("x", {"": "type"}),
        ({"runAt": None}, {"": "required"}),
        ({"schedule": "0 9 * * *"}, {"": "invalid"}),
        ({"runAt": "tomorrow"}, {"/runAt": "invalid"}),
        ({"handler": 5}, {"/handler": "type"}),
        ({"payload": "\0"}, {"/payload": "nul-character"}),
        ({"runAt": None, "schedule": {"cron": "0 9 30 2 *"}}, {"/schedule/cron": "never-fires"}),
    ],
)
async def test_faults(api: ApiCaller, patch: Any, faults: dict[str, str]) -> None:
    job_id = await created(api, runAt=FUTURE)
    assert (await patched(api, job_id, patch, 422)).faults == faults


async def test_a_payload_has_its_limit_after_the_merge(api: ApiCaller) -> None:
    job_id = await created(api, runAt=FUTURE, payload={"a": "x" * 200_000})
    refused = await patched(api, job_id, {"payload": {"b": "x" * 100_000}}, 413)
    assert refused["code"] == "payload-too-large"


@pytest.mark.parametrize("name", list(examples.PATCH_BODIES))
async def test_the_examples_of_the_document(api: ApiCaller, name: str) -> None:
    schedule = {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Madrid"}
    job_id = await created(api, schedule=schedule, payload={"url": "https://example.com"})
    await patched(api, job_id, examples.PATCH_BODIES[name])


async def test_no_job(api: ApiCaller) -> None:
    for job_id in ("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e", "nonsense"):
        assert (await patched(api, job_id, {"name": "x"}, 404))["code"] == "not-found"


@pytest.mark.parametrize("state", ["done", "cancelled"])
async def test_what_has_ended_stays_as_it_is(api: ApiCaller, connection: Connection, state: str) -> None:
    job_id = await add_job(connection, state=state)
    for patch in ({"name": "x"}, {"paused": True}, {"paused": False}):
        refused = await patched(api, job_id, patch, 409)
        assert (refused["code"], refused["state"]) == ("wrong-state", state)


async def test_a_schedule_is_merged(api: ApiCaller, connection: Connection) -> None:
    job_id = await created(api, schedule={"cron": "0 9 * * *", "timezone": "Asia/Tokyo", "maxRuns": 9})
    after = await patched(api, job_id, {"schedule": {"cron": "0 10 * * *", "maxRuns": None}})
    assert after["schedule"] == {"cron": "0 10 * * *", "timezone": "Asia/Tokyo"}
    assert after["nextRunAt"] == after["scheduledFor"]
    assert after["nextRunAt"].endswith("T01:00:00Z")
    assert (await row_of(connection, UUID(job_id)))["tzdata"]


async def test_from_cron_to_an_interval_and_to_a_one_off_and_back(api: ApiCaller, connection: Connection) -> None:
    job_id = await created(api, schedule="0 9 * * *")
    assert (await patched(api, job_id, {"schedule": {"every": "PT1H"}}, 422)).faults == {"/schedule": "invalid"}
    interval = await patched(api, job_id, {"schedule": {"cron": None, "timezone": None, "every": "PT1H"}})
    assert interval["schedule"] == {"every": "PT1H", "anchor": interval["createdAt"]}

    once = await patched(api, job_id, {"schedule": None, "runAt": "2100-01-01T01:00:00+01:00"})
    assert "schedule" not in once.body
    assert once["runAt"] == once["nextRunAt"] == once["scheduledFor"] == FUTURE
    assert (await row_of(connection, UUID(job_id)))["tzdata"] is None

    again = await patched(api, job_id, {"runAt": None, "schedule": "0 9 * * *"})
    assert again["schedule"] == {"cron": "0 9 * * *", "timezone": "UTC"}
    assert "runAt" not in again.body


async def test_the_same_schedule_once_more_moves_nothing(api: ApiCaller, connection: Connection) -> None:
    """Also where it has fired its last, so that as a new one it would be refused."""
    job_id = await created(api, schedule={**HOURLY, "endAt": FUTURE})
    await connection.execute(
        "update jobs set schedule = jsonb_set(schedule, '{endAt}', '\"2021-01-01T00:00:00Z\"'), attempt = 2"
    )
    before = await row_of(connection, UUID(job_id))
    await patched(api, job_id, {"schedule": {**HOURLY, "endAt": "2021-01-01T00:00:00Z"}, "name": "x"})
    after = await row_of(connection, UUID(job_id))
    assert (after["next_run_at"], after["attempt"], after["name"]) == (before["next_run_at"], 2, "x")


async def test_a_schedule_that_nobody_can_read_is_no_obstacle(api: ApiCaller, connection: Connection) -> None:
    job_id = await created(api, schedule=HOURLY)
    await connection.execute("""update jobs set schedule = '{"every": "soon"}'""")
    assert (await patched(api, job_id, {"name": "x"}))["name"] == "x"
    await patched(api, job_id, {"paused": True})
    assert (await patched(api, job_id, {"paused": False}, 422)).faults == {"/schedule/every": "invalid"}
    mended = await patched(api, job_id, {"schedule": HOURLY, "paused": False})
    assert (mended["state"], mended["schedule"]) == ("due", HOURLY)


async def test_jitter_and_the_first_new_tick(api: ApiCaller) -> None:
    job_id = await created(api, schedule=HOURLY)
    moved = await patched(api, job_id, {"schedule": {"every": "P1D"}, "jitter": "PT20M"})
    assert timedelta(0) <= at(moved["nextRunAt"]) - at(moved["scheduledFor"]) < timedelta(minutes=20)
    assert moved["scheduledFor"].endswith("T00:30:00Z")


async def test_pause_and_resume(api: ApiCaller, connection: Connection) -> None:
    job_id = await created(api, schedule=HOURLY)
    paused = await patched(api, job_id, {"paused": True, "pauseReason": "the move"})
    assert (paused["state"], paused["nextRunAt"], paused["pauseReason"]) == ("paused", None, "the move")
    assert paused["pausedBy"] == "anonymous"
    await connection.execute("update jobs set decided_until = now() - interval '150 minutes'")

    resumed = await patched(api, job_id, {"paused": False})

    assert (resumed["state"], resumed["pauseReason"], resumed["pausedBy"]) == ("due", None, None)
    assert resumed["nextRunAt"] == resumed["scheduledFor"]
    (skip,) = await skips_of(connection, UUID(job_id))
    assert (skip["reason"], skip["count"]) in {("paused", 2), ("paused", 3)}


async def test_a_patch_that_pauses_too_is_one_change_and_one_skip(api: ApiCaller, connection: Connection) -> None:
    job_id = await created(api, schedule=HOURLY)
    await connection.execute("update jobs set decided_until = now() - interval '150 minutes'")
    paused = await patched(api, job_id, {"schedule": {"every": "PT2H"}, "paused": True})
    assert (paused["state"], paused["schedule"]["every"]) == ("paused", "PT2H")
    assert [skip["reason"] for skip in await skips_of(connection, UUID(job_id))] == ["rescheduled"]

    resumed = await patched(api, job_id, {"schedule": {"every": "PT3H"}, "paused": None})
    assert (resumed["state"], resumed["schedule"]["every"]) == ("due", "PT3H")
    assert len(await skips_of(connection, UUID(job_id))) == 1


async def test_under_a_run(api: ApiCaller, connection: Connection, worker: WorkerStore) -> None:
    """Contract §5: a pause waits; plain fields do not; a new schedule is refused, or waits where that is asked for."""
    job_id = await add_job(connection)
    (claim,) = await worker.claim(WHOLE_RING, ["noop"], batch=1, bounds=UNBOUNDED)
    assert (await patched(api, job_id, {"name": "x", "payload": {"a": 1}}))["state"] == "claimed"

    refused = await patched(api, job_id, {"runAt": FUTURE}, 409)
    assert (refused["code"], refused["runId"]) == ("job-claimed", claim.run_id)
    waiting = await patched(api, job_id, {"runAt": FUTURE}, 202, afterCurrent="true")
    assert waiting["state"] == "claimed"
    assert waiting["runAt"] != FUTURE
    assert (await api.get(f"/jobs/{job_id}/explain"))["fields"]["waits"] == ["patch"]

    await patched(api, job_id, {"paused": True, "pauseReason": "the move"}, 202)
    await finish(worker, claim, RunOutcome.FAILED)

    after = await api.get(f"/jobs/{job_id}")
    assert (after["state"], after["runAt"], after["pauseReason"]) == ("paused", FUTURE, "the move")
    resumed = await patched(api, job_id, {"paused": False})
    assert (resumed["state"], resumed["nextRunAt"], resumed["attempt"]) == ("due", FUTURE, 0)


async def test_the_flag_of_the_query_is_true_or_false(api: ApiCaller) -> None:
    job_id = await created(api, runAt=FUTURE)
    assert (await patched(api, job_id, {}, 422, afterCurrent="1")).faults == {"/afterCurrent": "type"}
    await patched(api, job_id, {}, afterCurrent="false")
