"""What callers send that is broken, hostile or slow (cases.md A58, faults.md H2 to H8): never a 5xx, never a row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from ringcron_api import requests, server
from ringcron_api.operations import Operation
from ringcron_api.routes import OPERATIONS
from tests.support.api import ApiCaller, running_api
from tests.support.waiting import until

FUTURE = "2100-01-01T00:00:00Z"
HEAD = b"Host: x\r\nContent-Type: application/json\r\n"


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def count(connection: psycopg.AsyncConnection[Any]) -> int:
    row = await (await connection.execute("select count(*) from jobs")).fetchone()
    assert row is not None
    return int(row[0])


def with_payload(payload: bytes) -> bytes:
    return b'{"runAt": "2100-01-01T00:00:00Z", "payload": ' + payload + b"}"


@pytest.mark.parametrize(
    ("payload", "status", "faults"),
    [
        (rb'{"a":"\u0000"}', 422, {"/payload/a": "nul-character"}),
        (rb'{"a":"\ud800"}', 422, {"/payload/a": "lone-surrogate"}),
        (rb'{"\u0000":1}', 422, {"/payload/\0": "nul-character"}),
        (rb'{"\ud800":1}', 422, {"/payload/\ufffd": "lone-surrogate"}),
        (b'{"a":1e999}', 422, {"/payload/a": "number-too-large"}),
        (b'{"a":-1e400}', 422, {"/payload/a": "number-too-large"}),
        (b'{"a":' + b"9" * 5000 + b"}", 422, {"/payload/a": "integer-too-large"}),
        (b'{"a":18446744073709551616}', 422, {"/payload/a": "integer-too-large"}),
        (rb'["\u0000", 1e999, "\ud800"]', 422, {"/payload/0": None, "/payload/1": None, "/payload/2": None}),
        (b'{"a":NaN}', 400, None),
        (b'{"a":Infinity}', 400, None),
        (b"[" * 5000 + b"]" * 5000, 400, None),
        (b"[" * 64 + b"]" * 64, 400, None),  # with the body itself 65 levels
        (b'"\xff"', 400, None),
        (b'"\x00"', 400, None),
        (b'{"a":', 400, None),
        (b"'a'", 400, None),
        (b"01", 400, None),
    ],
)
async def test_A58_json_that_cannot_be_held(
    api: ApiCaller,
    connection: psycopg.AsyncConnection[Any],
    payload: bytes,
    status: int,
    faults: dict[str, str | None] | None,
) -> None:
    refused = await api.post_raw("/jobs", with_payload(payload))
    assert refused.status == status
    if faults is None:
        assert refused["code"] == "malformed-json"
        assert refused["line"] == 1
        assert refused["column"] > 40
    else:
        assert refused.faults.keys() == faults.keys()
        assert all(code in (None, refused.faults[pointer]) for pointer, code in faults.items())
    assert await count(connection) == 0


HOSTILE = [
    rb'"\u0000"',
    rb'{"\u0000": 1}',
    rb'"\ud800"',
    b'"\xff"',
    b"NaN",
    b"1e999",
    b"9" * 5000,
    b"[" * 5000 + b"]" * 5000,
    b"",
    b"{",
]


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.body is not None], ids=lambda one: one.name)
async def test_A58_at_every_call_that_takes_a_body(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], operation: Operation
) -> None:
    job = await api.post("/jobs", {"runAt": FUTURE, "payload": "kept"})
    path = operation.path.replace("{jobId}", job["jobId"])
    media_type = "application/merge-patch+json" if operation.method == "PATCH" else "application/json"
    for value in HOSTILE:
        for body in (value, b'{"payload": %b}' % value, b'{"schedule": %b}' % value, b'{"jobs": [%b]}' % value):
            answer = await api.call(operation.method, path, data=body, headers={"Content-Type": media_type})
            if answer.status == 207:
                assert {result["status"] for result in answer["results"]} <= {400, 422}
            else:
                assert answer.status in (400, 422)
    assert await count(connection) == 1
    assert (await api.get(f"/jobs/{job['jobId']}"))["payload"] == "kept"


async def test_H8_times_that_are_none(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    refused = [
        *("2027-01-01T00:00:00", "2027-01-01T00:00:60Z", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z"),
        *("9000-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "infinity", "-infinity", "now", "2027-02-30T00:00:00Z", ""),
    ]
    jobs = [{"runAt": text} for text in refused]
    jobs += [{"schedule": {"every": "PT1H", "anchor": text}} for text in refused]
    answer = await api.post("/jobs/batch", {"jobs": jobs})
    assert {result["status"] for result in answer["results"]} == {422}
    faults = [fault["pointer"] for result in answer["results"] for fault in result["error"]["errors"]]
    assert faults == ["/runAt"] * len(refused) + ["/schedule/anchor"] * len(refused)
    assert await count(connection) == 0
    past = await api.post("/jobs", {"runAt": "2001-01-01T00:00:00Z"})
    assert (past.status, past["scheduledFor"]) == (201, "2001-01-01T00:00:00Z")
    assert past["nextRunAt"] == past["createdAt"]


@pytest.mark.parametrize(
    "payload",
    [
        b"18446744073709551615",
        b"-9223372036854775808",
        b"1e-999",
        b"[" * 63 + b"]" * 63,
        '"\\ud83d\\ude00 \U0001f600 \u2028"'.encode(),
        rb'"\u0001\u001f\\u0000"',
        b'{"a": 1, "a": 2}',
        b"null",
        b'""',
        b"[]",
    ],
)
async def test_H5_H6_json_that_can_be_held_comes_back_the_same(api: ApiCaller, payload: bytes) -> None:
    created = await api.post_raw("/jobs", with_payload(payload))
    assert created.status == 201
    assert created["payload"] == json.loads(payload)
    assert (await api.get(f"/jobs/{created['jobId']}"))["payload"] == json.loads(payload)


async def test_H7_members_keep_neither_their_order_nor_their_twins(api: ApiCaller) -> None:
    created = await api.post_raw("/jobs", with_payload(b'{"long": 1, "b": 2, "a": 3, "b": 4}'))
    async with api.session.get(f"{api.url}/jobs/{created['jobId']}") as answer:
        assert '"payload":{"a": 3, "b": 4, "long": 1}' in await answer.text()


async def test_H5_a_large_number_keeps_its_value_but_not_its_spelling(api: ApiCaller) -> None:
    created = await api.post_raw("/jobs", with_payload(b"[1.7976931348623157e308, 1.50, -0.0]"))
    assert [float(number) for number in created["payload"]] == [1.7976931348623157e308, 1.5, 0.0]


async def test_H6_text_of_every_kind_in_names(api: ApiCaller) -> None:
    body = {"runAt": FUTURE, "key": "ключ \x01'\"\\%", "name": "\U0001f600", "tags": ["{a,b}", "", "é"][::2]}
    created = await api.post("/jobs", body)
    assert (created["key"], created["name"], created["tags"]) == (body["key"], body["name"], body["tags"])
    for field in ("key", "name"):
        assert (await api.post("/jobs", {"runAt": FUTURE, field: "a\0b"})).faults == {f"/{field}": "nul-character"}


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "nonsense"],
)
async def test_a_body_that_is_not_json(api: ApiCaller, content_type: str | None) -> None:
    refused = await api.post_raw("/jobs", with_payload(b"1"), content_type)
    assert (refused.status, refused["code"]) == (415, "unsupported-media-type")


async def test_json_by_any_other_spelling(api: ApiCaller) -> None:
    for content_type in ("Application/JSON", "application/json; charset=UTF-8"):
        assert (await api.post_raw("/jobs", with_payload(b"1"), content_type)).status == 201


async def test_a_compressed_body(api: ApiCaller) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    refused = await api.call("POST", "/jobs", data=b"\x1f\x8b", headers=headers)
    assert refused.status == 415


async def test_H4_what_is_too_large(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    body = await api.post_raw("/jobs", with_payload(b'"' + b"x" * (1024 * 1024) + b'"'))
    assert (body.status, body["code"]) == (413, "payload-too-large")
    payload = await api.post_raw("/jobs", with_payload(b'"' + b"x" * (256 * 1024) + b'"'))
    assert (payload.status, payload["code"]) == (413, "payload-too-large")
    assert await count(connection) == 0
    spaced = await api.post_raw("/jobs", with_payload(b"[" + b" " * 500_000 + b'"' + b"x" * (256 * 1024 - 4) + b'"]'))
    assert spaced.status == 201  # what counts is the payload, not how it is spelled


async def test_a_body_of_chunks_without_end(api: ApiCaller) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"[" * 65536

    refused = await api.call("POST", "/jobs", data=chunks(), headers={"Content-Type": "application/json"})
    assert refused.status == 413


async def raw(api: ApiCaller, request: bytes) -> tuple[int, dict[str, Any]]:
    """The status and the problem that some bytes are answered with."""
    host, port = api.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**20)
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
    body = await reader.readexactly(length)
    writer.close()
    await writer.wait_closed()
    assert "application/problem+json" in head
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "bad-request"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad-request"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", 400, "bad-request"),
        (b"POST /jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: x\r\n\r\n", 400, "bad-request"),
        (b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404, "not-found"),
        (b"GET /jobs/ HTTP/1.1\r\nHost: x\r\n\r\n", 404, "not-found"),
        (b"PUT /jobs HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method-not-allowed"),
        (b"TRACE /jobs HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method-not-allowed"),
        (b"POST /jobs HTTP/1.1\r\n" + HEAD + b"Expect: tea\r\nContent-Length: 2\r\n\r\n{}", 417, "expectation-failed"),
        (b"POST /jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: 0\r\n\r\n", 400, "malformed-json"),
        (b"POST /jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: 9000000\r\n\r\n", 413, "payload-too-large"),
    ],
)
async def test_what_aiohttp_refuses_is_a_problem_too(
    api: ApiCaller, request_bytes: bytes, status: int, code: str
) -> None:
    answered, problem = await raw(api, request_bytes)
    assert (answered, problem["code"], problem["status"]) == (status, code, status)
    assert problem["requestId"]


async def test_the_methods_of_a_path(api: ApiCaller) -> None:
    refused = await api.call("PATCH", "/jobs")
    assert refused.headers["Allow"] == "GET, HEAD, POST"
    async with api.session.head(f"{api.url}/jobs") as answer:
        assert answer.status == 200
        assert await answer.read() == b""


async def test_a_caller_that_waits_for_100_continue(api: ApiCaller) -> None:
    created = await api.call("POST", "/jobs", json={"runAt": FUTURE}, expect100=True)
    assert created.status == 201


async def test_a_request_id_of_the_callers_own(api: ApiCaller) -> None:
    answer = await api.call("GET", "/nowhere", headers={"X-Request-Id": "abc-1.2_3"})
    assert (answer["requestId"], answer.headers["X-Request-Id"]) == ("abc-1.2_3", "abc-1.2_3")
    for hostile in ("a b", "x" * 65, "<script>"):
        answer = await api.call("GET", "/nowhere", headers={"X-Request-Id": hostile})
        assert answer["requestId"] != hostile


async def test_an_error_that_nobody_foresaw_shows_nothing(api: ApiCaller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("postgresql://user:secret@host/db")

    monkeypatch.setattr("ringcron_api.jobs.job_answer", fails)
    created = await api.post("/jobs", {"runAt": FUTURE})
    refused = await api.get(f"/jobs/{created['jobId']}")
    assert (refused.status, refused["code"]) == (500, "internal-error")
    assert "secret" not in json.dumps(refused.body)
    assert "Zero" not in json.dumps(refused.body)


async def test_H2_a_caller_that_goes_away_does_not_stop_its_create(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    host, port = api.url.removeprefix("http://").split(":")
    async with connection.transaction():
        await connection.execute("lock table jobs in access exclusive mode")
        body = b'{"runAt": "2100-01-01T00:00:00Z"}'
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

        async def waits() -> bool:
            row = await (await connection.execute("select count(*) from pg_locks where not granted")).fetchone()
            return row is not None and row[0] > 0

        await until(waits, what="the create waits for the lock")
        writer.close()
        await writer.wait_closed()

    async def stored() -> bool:
        return await count(connection) == 1

    await until(stored, what="the job is stored")


async def test_H3_slow_callers_are_dropped_and_hinder_nobody(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 1.0)
    monkeypatch.setattr(requests, "BODY_SECONDS", 1.0)
    async with running_api(database_url) as api:
        host, port = api.url.removeprefix("http://").split(":")
        halves = [b"GET /jobs HT", b"POST /jobs HTTP/1.1\r\n" + HEAD + b"Content-Length: 100\r\n\r\n{", b""]
        slow = [await asyncio.open_connection(host, int(port)) for _ in range(500)]
        for number, (_, writer) in enumerate(slow):
            writer.write(halves[number % 3])
        for _ in range(20):
            assert (await api.post("/jobs", {"runAt": FUTURE})).status == 201
        async with asyncio.timeout(30):
            endings = await asyncio.gather(*(reader.read() for reader, _ in slow))
        assert {ending.split(b"\r\n")[0] for ending in endings} == {b"", b"HTTP/1.1 408 Request Timeout"}
        for _, writer in slow:
            writer.close()
