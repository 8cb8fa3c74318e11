"""The client against servers that fail: what it tries again, what it does not, and that the key goes nowhere else."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from ringcron.client import (
    ApiError,
    Client,
    Misdirected,
    NewJob,
    NotFound,
    TooManyRequests,
    Unavailable,
    Unreachable,
)
from ringcron.clock import SystemClock
from ringcron.local.processes import free_port
from tests.support.programs import Programs
from tests.support.servers import OwnPostgres

KEY = "rc_abc_s3cret"
JOB = NewJob(run_at=datetime(2100, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request that reached the server."""

    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(*answers: Answer) -> AsyncIterator[tuple[str, list[Seen]]]:
    """A server that gives these answers one after the other, the last one for ever. Its address and what it saw."""
    seen: list[Seen] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(Seen(target=request.raw_path, headers=dict(request.headers), body=await request.read()))
        return await answers[min(len(seen), len(answers)) - 1](request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}", seen
    finally:
        await runner.cleanup()


def problem(status: int, code: str, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        document = {"status": status, "code": code, "detail": "why"}
        kind = "application/problem+json"
        return web.Response(status=status, body=json.dumps(document), content_type=kind, headers=headers)

    return answer


def success(body: object) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body)

    return answer


async def cut(request: web.Request) -> web.StreamResponse:
    """The connection ends without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def cut_in_the_middle(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"it')
    assert request.transport is not None
    request.transport.abort()
    return response


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3600)
    return web.Response()


RING = success({"items": [], "slots": [], "unowned": [], "epoch": 0, "takenAt": "2026-11-29T15:00:00Z"})
EMPTY = success({"items": [], "nextCursor": None})


@pytest.mark.parametrize(
    "fault",
    [
        problem(503, "store-unavailable"),
        problem(429, "too-many-requests"),
        problem(409, "idempotency-in-progress"),
        problem(502, "of a proxy"),
        cut,
        cut_in_the_middle,
    ],
    ids=["503", "429", "in progress", "502", "cut", "cut in the middle"],
)
async def test_what_may_get_better_is_tried_again(fault: Answer) -> None:
    async with server(fault, fault, RING) as (url, seen), Client(url) as client:
        assert (await client.shards()).epoch == 0
        assert len(seen) >= 3


async def test_every_try_of_a_creation_is_the_same_request() -> None:
    faults = (cut, problem(503, "store-unavailable"), problem(422, "validation-failed"))
    async with server(*faults) as (url, seen), Client(url) as client:
        for key in (None, None, "mine"):
            with pytest.raises(ApiError):
                await client.create_job(JOB, idempotency_key=key)
    keys = [request.headers["Idempotency-Key"] for request in seen]
    assert len(keys) == 5
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert len(keys[0]) == 32
    assert keys[4] == "mine"
    assert {request.body for request in seen} == {b'{"runAt": "2100-01-01T00:00:00Z"}'}


@pytest.mark.parametrize("call", ["trigger", "redrive", "create_jobs", "redrive_all"])
async def test_what_makes_something_carries_an_idempotency_key(call: str) -> None:
    async with server(problem(404, "not-found")) as (url, seen), Client(url) as client:
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "trigger": lambda: client.trigger("a"),
            "redrive": lambda: client.redrive("a"),
            "create_jobs": lambda: client.create_jobs([JOB]),
            "redrive_all": lambda: client.redrive_all(),
        }
        with pytest.raises(NotFound):
            await calls[call]()
        assert len(seen[0].headers["Idempotency-Key"]) == 32


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422, 500])
async def test_what_was_refused_is_not_tried_again(status: int) -> None:
    async with server(problem(status, "of some kind")) as (url, seen), Client(url) as client:
        with pytest.raises(ApiError) as caught:
            await client.shards()
        assert caught.value.status == status
        assert len(seen) == 1


async def test_retry_after_is_honoured() -> None:
    clock = SystemClock()
    async with (
        server(problem(429, "too-many-requests", **{"Retry-After": "1"}), RING) as (url, _),
        Client(url) as client,
    ):
        began = clock.elapsed()
        await client.shards()
        assert clock.elapsed() - began >= 1.0


async def test_what_asks_for_more_patience_than_there_is_is_raised_at_once() -> None:
    asked = problem(429, "too-many-requests", **{"Retry-After": "3600"})
    async with server(asked) as (url, seen), Client(url) as client:
        with pytest.raises(TooManyRequests) as caught:
            await client.shards()
        assert caught.value.retry_after_seconds == 3600
        assert len(seen) == 1


async def test_the_deadline_bounds_all_tries_and_the_last_reason_is_told() -> None:
    async with server(problem(503, "store-unavailable")) as (url, seen):
        async with Client(url, timeout=timedelta(seconds=1)) as client:
            with pytest.raises(Unavailable):
                async with asyncio.timeout(3):
                    await client.shards()
        assert len(seen) > 1


async def test_a_server_that_hangs_is_given_up_at_the_deadline() -> None:
    async with server(hang) as (url, seen), Client(url, timeout=timedelta(seconds=0.5)) as client:
        with pytest.raises(Unreachable, match="no answer within"):
            async with asyncio.timeout(3):
                await client.shards()
        assert len(seen) == 1


async def test_the_number_of_tries_may_be_bounded() -> None:
    async with server(cut) as (url, seen), Client(url, tries=2) as client:
        with pytest.raises(Unreachable):
            await client.create_job(JOB)
        assert len(seen) == 2


async def test_nobody_at_the_address_is_told_in_a_sentence() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with Client(url, tries=1) as client:
        with pytest.raises(Unreachable, match=rf"{url}/? cannot be reached: Connect call failed|refused"):
            await client.shards()


@pytest.mark.parametrize("body", [[], {"items": 5}, {"items": [{}]}, None], ids=str)
async def test_another_kind_of_server_is_recognized(body: object) -> None:
    async with server(success(body)) as (url, seen), Client(url) as client:
        with pytest.raises(Misdirected):
            async for _ in client.list_jobs():
                pass
        assert len(seen) == 1


async def test_a_page_for_people_is_no_answer() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>hello</html>", content_type="text/html")

    async with server(page) as (url, _), Client(url) as client:
        with pytest.raises(Misdirected):
            await client.shards()


async def test_the_api_key_goes_to_its_address_alone_and_is_logged_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with server(EMPTY) as (elsewhere, strangers):

        async def redirect(_: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": f"{elsewhere}/jobs"})

        async def leads_away(_: web.Request) -> web.Response:
            link = f'<{elsewhere}/jobs/a/runs?cursor=c2>; rel="next"'
            return web.json_response([], headers={"Link": link})

        busy = problem(503, "store-unavailable")
        async with server(busy, redirect, leads_away, success([])) as (url, seen), Client(url, KEY) as client:
            with pytest.raises(ApiError, match="307") as caught:
                await client.shards()
            assert [run async for run in client.runs("a")] == []
        assert [request.target for request in seen] == ["/shards", "/shards", "/jobs/a/runs", "/jobs/a/runs?cursor=c2"]
        assert {request.headers["Authorization"] for request in seen} == {f"Bearer {KEY}"}
        assert strangers == []
    assert "the API is asked again" in caplog.text
    assert KEY not in caplog.text + repr(caught.value)


async def test_an_address_with_a_path_keeps_it_on_every_page() -> None:
    async def second(_: web.Request) -> web.Response:
        return web.json_response([], headers={"Link": '</jobs/a/skips?limit=5&cursor=c%2F2>; rel="next"'})

    async with server(second, success([])) as (url, seen), Client(f"{url}/behind/a proxy/") as client:
        assert [skip async for skip in client.skips("a", page_size=5)] == []
    assert [request.target for request in seen] == [
        "/behind/a%20proxy/jobs/a/skips?limit=5",
        "/behind/a%20proxy/jobs/a/skips?limit=5&cursor=c/2",
    ]


@pytest.mark.processes
async def test_a_database_and_an_api_that_come_back_are_waited_for(
    programs: Programs, own_postgres: Callable[..., OwnPostgres]
) -> None:
    postgres = own_postgres()
    api = programs.api(postgres.url)
    async with Client(api.url, timeout=timedelta(seconds=60)) as client:
        created = await client.create_job(JOB)
        postgres.stop()
        waiting = asyncio.create_task(client.get_job(created.job_id))
        done, _ = await asyncio.wait([waiting], timeout=0.5)
        assert not done
        postgres.start()
        assert (await waiting).job_id == created.job_id
