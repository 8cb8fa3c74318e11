"""POST /jobs/batch: each job by itself or all of them, in both forms, with keys, cut connections and lost answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY

from tests.support.api import Answer, ApiCaller, running_api
from tests.support.jobs import row_of
from tests.support.waiting import until

FUTURE = "2100-01-01T00:00:00Z"
NDJSON = "application/x-ndjson"
ONCE = {"runAt": FUTURE}
DEADLOCKS = ("ringcron_store_retries_total", {"sqlstate": "40P01"})


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


async def post_lines(api: ApiCaller, *jobs: Any, path: str = "/jobs/batch") -> Answer:
    body = b"\n".join(job if isinstance(job, bytes) else json.dumps(job).encode() for job in jobs)
    return await api.post_raw(path, body, NDJSON)


def statuses(results: list[dict[str, Any]]) -> list[int]:
    assert [result["index"] for result in results] == list(range(len(results)))
    return [result["status"] for result in results]


async def test_each_job_is_stored_as_a_single_create_would(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    jobs = [
        {"runAt": FUTURE, "payload": {"a": [1, 2.5, None, "ü"]}},
        {"runAt": "2100-01-01T02:00:00.5+02:00", "payload": None, "tags": ["a", "b", "a"], "name": "n"},
        {"schedule": {"cron": "0 9 * * *", "timezone": "Europe/Madrid", "maxRuns": 3}, "handler": "http"},
        {"schedule": {"every": "PT15M", "anchor": "2027-01-01T00:00:00Z"}, "timeout": "PT1M", "jitter": "PT5M"},
        {"runAt": "2020-01-01T00:00:00Z", "retry": {"maxAttempts": 2, "minBackoff": "PT1S"}, "key": "k"},
        {"runAt": "2100-01-01T00:00:00Z", "overlap": "buffer_all", "catchup": "none", "catchupWindow": "PT1H"},
        {"runAt": FUTURE, "payload": {"a": [1, 2.5, None, "ü"]}},
    ]
    answer = await api.post("/jobs/batch", {"jobs": jobs})
    assert answer.status == 207
    assert statuses(answer["results"]) == [201] * len(jobs)
    for job, result in zip(jobs, answer["results"], strict=True):
        single = await api.post("/jobs", {**job, "key": f"single-{result['index']}"})
        stored, other = (
            (await api.get(f"/jobs/{result['jobId']}")).body,
            (await api.get(f"/jobs/{single['jobId']}")).body,
        )
        assert stored["nextRunAt"] == result["nextRunAt"]
        own = {"jobId", "key", "slot", "createdAt", "updatedAt"} | ({"nextRunAt"} if "jitter" in job else set())
        past = {"nextRunAt"} if job.get("runAt", FUTURE) < "2026" else set()
        assert {n: v for n, v in stored.items() if n not in own | past} == {
            n: v for n, v in other.items() if n not in own | past
        }
        row, like = await row_of(connection, stored["jobId"]), await row_of(connection, other["jobId"])
        moving = {"id", "slot", "key", "next_run_at", "created_at", "updated_at", "decided_until"}
        assert {n: v for n, v in row.items() if n not in moving} == {n: v for n, v in like.items() if n not in moving}
    tagged = await api.get("/jobs", tag="b")
    assert answer["results"][1]["jobId"] in {item["jobId"] for item in tagged["items"]}


async def test_one_bad_line_of_ten_thousand(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    jobs: list[Any] = [{"runAt": FUTURE, "payload": {"n": n}} for n in range(10_000)]
    jobs[7_000] = {"runAt": "tomorrow", "payload": {"n": 7_000}}
    answer = await post_lines(api, *jobs)
    assert answer.status == 207
    assert statuses(answer.body) == [201] * 7_000 + [422] + [201] * 2_999
    assert [fault["pointer"] for fault in answer.body[7_000]["error"]["errors"]] == ["/runAt"]
    assert await count(connection) == 9_999


@pytest.mark.parametrize("form", ["json", "ndjson"])
async def test_every_kind_of_fault_is_of_its_job_alone(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], form: str
) -> None:
    bad: list[tuple[Any, int, str, list[str]]] = [
        ({}, 422, "validation-failed", [""]),
        (7, 422, "validation-failed", [""]),
        ({**ONCE, "handlr": "x"}, 422, "validation-failed", ["/handlr"]),
        ({**ONCE, "payload": {"a": "\0"}}, 422, "validation-failed", ["/payload/a"]),
        ({**ONCE, "payload": 2**64}, 422, "validation-failed", ["/payload"]),
        ({**ONCE, "payload": "x" * 262_144}, 413, "payload-too-large", []),
        ({**ONCE, "key": ""}, 422, "validation-failed", ["/key"]),
        ({**ONCE, "key": "k" * 513}, 422, "validation-failed", ["/key"]),
        ({**ONCE, "onConflict": "keep"}, 422, "validation-failed", ["/onConflict"]),
        ({"schedule": "0 0 30 2 *"}, 422, "schedule-never-fires", ["/schedule/cron"]),
        ({"schedule": {"cron": "0 9 * * *", "timezone": "Nowhere"}}, 422, "validation-failed", ["/schedule/timezone"]),
    ]
    jobs = [job for one, *_ in bad for job in (ONCE, one)]
    answer = await (post_lines(api, *jobs) if form == "ndjson" else api.post("/jobs/batch", {"jobs": jobs}))
    assert answer.status == 207
    results = answer.body if form == "ndjson" else answer["results"]
    assert statuses(results)[::2] == [201] * len(bad)
    for result, (_, status, code, pointers) in zip(results[1::2], bad, strict=True):
        assert (result["status"], result["error"]["code"]) == (status, code)
        assert [fault["pointer"] for fault in result["error"].get("errors", [])] == pointers
    assert await count(connection) == len(bad)


async def test_a_line_that_is_no_json_is_an_error_of_that_line(api: ApiCaller) -> None:
    deep = b'{"runAt": "' + FUTURE.encode() + b'", "payload": ' + b"[" * 64 + b"]" * 64 + b"}"
    answer = await post_lines(api, ONCE, b"{", b"", b"  ", b'{"runAt": NaN}', b'"\xff"', deep, ONCE)
    assert statuses(answer.body) == [201, 400, 400, 400, 400, 201]
    assert {result["error"]["code"] for result in answer.body[1:5]} == {"malformed-json"}


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"[]", 422, ""),
        (b"{}", 422, "/jobs"),
        (b'{"jobs": 7}', 422, "/jobs"),
        (b'{"jobs": [], "job": []}', 422, "/job"),
        (b'{"jobs": [' + b"0," * 10_000 + b"0]}", 422, "/jobs"),
        (b'{"jobs": [', 400, None),
        (b'{"jobs": [' + b"[" * 63 + b"]" * 63 + b"]}", 400, None),
    ],
)
async def test_a_body_that_cannot_be_taken_apart_is_refused_whole(
    api: ApiCaller, body: bytes, status: int, pointer: str | None
) -> None:
    answer = await api.post_raw("/jobs/batch", body)
    assert answer.status == status
    if pointer is not None:
        assert list(answer.faults) == [pointer]


async def test_too_many_lines_and_other_media_types(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    assert (await post_lines(api, *[b"1"] * 10_001)).status == 422
    assert (await api.post_raw("/jobs/batch", b"{}", "text/plain")).status == 415
    assert (await post_lines(api)).body == []
    assert (await api.post("/jobs/batch", {"jobs": []}))["results"] == []
    assert await count(connection) == 0


async def test_atomic_is_all_or_nothing(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    path = "/jobs/batch?atomic=true"
    refused = await api.post(
        path, {"jobs": [ONCE, {"runAt": "x"}, {**ONCE, "x": 1}, {**ONCE, "payload": "x" * 262_144}]}
    )
    assert refused.status == 422
    assert refused.faults == {
        "/jobs/1/runAt": "invalid",
        "/jobs/2/x": "unknown-field",
        "/jobs/3": "payload-too-large",
    }
    assert await count(connection) == 0
    malformed = await post_lines(api, ONCE, b"{", path=path)
    assert malformed.faults == {"/1": "malformed-json"}
    assert await count(connection) == 0

    whole = await api.post(path, {"jobs": [ONCE] * 3 + [{**ONCE, "key": "a", "tags": ["t"]}]})
    assert whole.status == 201
    assert statuses(whole["results"]) == [201] * 4
    assert await count(connection) == 4

    taken = await api.post(path, {"jobs": [ONCE, {**ONCE, "key": "b"}, {**ONCE, "key": "a"}]})
    assert taken.status == 422
    assert taken.faults == {"/jobs/2/key": "key-exists"}
    assert (await count(connection), await count(connection, "job_keys")) == (4, 1)
    kept = await api.post(path, {"jobs": [ONCE, {**ONCE, "key": "a", "onConflict": "keep"}]})
    assert statuses(kept["results"]) == [201, 200]
    assert kept["results"][1]["jobId"] == whole["results"][3]["jobId"]


async def test_keys_within_a_batch(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    held = await api.post("/jobs", {**ONCE, "key": "held", "payload": 0})
    cancelled = await api.post("/jobs", {**ONCE, "key": "free"})
    assert (await api.delete(f"/jobs/{cancelled['jobId']}")).status == 204
    answer = await post_lines(
        api,
        {**ONCE, "key": "new"},
        {**ONCE, "key": "new"},
        {**ONCE, "key": "new", "onConflict": "keep"},
        {**ONCE, "key": "held"},
        {**ONCE, "key": "held", "onConflict": "replace", "payload": 1},
        {**ONCE, "key": "held", "onConflict": "replace", "payload": 2},
        {**ONCE, "key": "free"},
        ONCE,
    )
    assert statuses(answer.body) == [201, 409, 200, 409, 200, 200, 201, 201]
    assert answer.body[1]["error"]["code"] == "key-exists"
    assert answer.body[1]["error"]["jobId"] == answer.body[0]["jobId"] == answer.body[2]["jobId"]
    assert {answer.body[3]["error"]["jobId"], *(r["jobId"] for r in answer.body[4:6])} == {held["jobId"]}
    assert (await api.get(f"/jobs/{held['jobId']}"))["payload"] == 2
    cursor = await connection.execute("select count(*) from jobs where state = 'due' and key is not null group by key")
    assert await cursor.fetchall() == [(1,)] * 3


async def test_fifty_batches_with_the_same_keys_make_one_job_each(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    keys = [f"k{n}" for n in range(20)]
    batches = [[{**ONCE, "key": key} for key in (keys if turn % 2 else keys[::-1])] for turn in range(50)]
    answers = await asyncio.gather(
        *(
            api.post(f"/jobs/batch{'?atomic=true' if turn % 5 == 0 else ''}", {"jobs": jobs})
            for turn, jobs in enumerate(batches)
        )
    )
    assert {answer.status for answer in answers} <= {201, 207, 422}
    assert await count(connection) == len(keys)


async def test_a_rehearsal_stores_nothing(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    held = await api.post("/jobs", {**ONCE, "key": "held"})
    answer = await post_lines(
        api, ONCE, {"runAt": "x"}, {**ONCE, "key": "held"}, {**ONCE, "key": "new"}, path="/jobs/batch?dryRun=true"
    )
    assert statuses(answer.body) == [201, 422, 409, 201]
    assert (await api.post("/jobs/batch?dryRun=true&atomic=true", {"jobs": [ONCE]})).status == 201
    assert (await count(connection), await count(connection, "job_keys")) == (1, 1)
    assert (await api.get(f"/jobs/{answer.body[0]['jobId']}")).status == 404
    assert (await api.get(f"/jobs/{held['jobId']}")).status == 200


async def send_part(api: ApiCaller, sent: int, announced: int) -> asyncio.StreamWriter:
    """A connection on which so many lines of a batch were sent."""
    host, port = api.url.removeprefix("http://").split(":")
    line = json.dumps(ONCE).encode() + b"\n"
    head = f"Host: x\r\nContent-Type: {NDJSON}\r\nContent-Length: {len(line) * announced}\r\n\r\n"
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /jobs/batch HTTP/1.1\r\n" + head.encode() + line * sent)
    await writer.drain()
    return writer


async def go_away(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_caller_that_goes_away_mid_body_leaves_nothing(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    await go_away(await send_part(api, 60, 100))
    assert (await api.post("/jobs", ONCE)).status == 201
    assert await count(connection) == 1


async def test_a_caller_that_goes_away_before_the_answer_has_all_stored(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    writer = await send_part(api, 5_000, 5_000)
    await until(lambda: _any(connection), seconds=30)
    await go_away(writer)
    await until(lambda: _is(connection, 5_000), seconds=30)


async def _any(connection: psycopg.AsyncConnection[Any]) -> bool:
    return await count(connection) > 0


async def _is(connection: psycopg.AsyncConnection[Any], expected: int) -> bool:
    return await count(connection) == expected


async def test_others_are_answered_while_a_batch_is_read(api: ApiCaller) -> None:
    jobs = [{"runAt": FUTURE, "name": f"n{n}", "payload": {"n": n}} for n in range(10_000)]
    body = b"\n".join(json.dumps(job).encode() for job in jobs)
    batch = asyncio.create_task(api.post_raw("/jobs/batch", body, NDJSON))
    answered = 0
    while not batch.done():
        assert (await api.get("/healthz")).status == 200
        answered += 1
    assert statuses((await batch).body) == [201] * 10_000
    assert answered > 10


async def test_bodies_above_the_limit_are_refused_before_they_are_read(
    api: ApiCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringcron_api.batch_body.BATCH_LIMIT", 1000)
    assert (await post_lines(api, *[ONCE] * 100)).status == 413


async def test_racing_batches_that_are_one_transaction_lock_their_keys_in_order(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringcron_api.batch.CHUNK", 5)
    keys = [f"k{n:02}" for n in range(40)]

    async def post(turn: int) -> Answer:
        jobs = [{**ONCE, "key": key, "onConflict": "replace"} for key in (keys if turn % 2 else keys[::-1])]
        headers = {"Idempotency-Key": f"i{turn}"}
        return await api.call("POST", "/jobs/batch", json={"jobs": jobs}, headers=headers)

    before = REGISTRY.get_sample_value(*DEADLOCKS)
    answers = await asyncio.gather(*(post(turn) for turn in range(8)))
    assert [answer.status for answer in answers] == [207] * 8
    assert {status for answer in answers for status in statuses(answer["results"])} <= {200, 201}
    assert await count(connection) == len(keys)
    assert REGISTRY.get_sample_value(*DEADLOCKS) == before
    again = await post(3)
    assert (again.headers["Idempotency-Replayed"], again.body) == ("true", answers[3].body)
