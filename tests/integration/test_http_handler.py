"""The http handler against a real server, and against addresses that it must not reach."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from ringcron import Fail
from ringcron.addresses import AddressPolicy
from ringcron.clock import SystemClock
from ringcron_shard_worker.builtin.http import HttpHandler
from ringcron_shard_worker.handler_process.context import Context

JOB = UUID("01890000-0000-7000-8000-000000000001")
CONTEXT = Context(
    job_id=JOB,
    run_id=f"{JOB}.9",
    scheduled_for=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
    attempt=2,
    lease_generation=9,
)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Target:
    """An HTTP server on loopback that counts its connections."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: list[web.BaseRequest] = []
        self.answer: Answer = self._hello
        self.port = 0

    @staticmethod
    async def _hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        return await self.answer(request)  # type: ignore[arg-type]

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    """On 127.0.0.1 and ::1, the same port."""
    target = Target()
    server = web.Server(target.handle)
    loop = asyncio.get_running_loop()

    def connected() -> asyncio.Protocol:
        target.connections += 1
        return server()

    listeners = []
    for address in ("127.0.0.1", "::1"):
        listener = await loop.create_server(connected, address, target.port)
        target.port = listener.sockets[0].getsockname()[1]
        listeners.append(listener)
    yield target
    for listener in listeners:
        listener.close()
    await server.shutdown(1)


@pytest.fixture
def allowed() -> HttpHandler:
    return HttpHandler(AddressPolicy(allow=["127.0.0.0/8", "::1"]), SystemClock())


@pytest.fixture
def strict() -> HttpHandler:
    return HttpHandler(AddressPolicy(), SystemClock())


async def failure(handler: HttpHandler, **payload: Any) -> Fail:
    with pytest.raises(Fail) as caught:
        await handler.run(CONTEXT, payload)
    return caught.value


def answering(status: int, text: str = "", **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return answer


async def test_2xx_succeeds_and_the_run_is_named(target: Target, allowed: HttpHandler) -> None:
    target.answer = answering(201, "made")
    result = await allowed.run(CONTEXT, {"url": target.url("/x?y=z"), "method": "PUT", "body": {"a": 1}})

    assert result == {"status": 201, "body": "made"}
    request = target.requests[0]
    assert (request.method, request.path_qs) == ("PUT", "/x?y=z")
    sent = {name: request.headers[name] for name in request.headers if name.startswith("Ringcron-")}
    assert sent == {
        "Ringcron-Job-Id": str(JOB),
        "Ringcron-Run-Id": f"{JOB}.9",
        "Ringcron-Scheduled-For": "2030-01-02T03:04:05Z",
        "Ringcron-Attempt": "2",
        "Ringcron-Lease-Generation": "9",
    }


async def test_other_answers_fail_with_the_beginning_of_what_they_say(target: Target, allowed: HttpHandler) -> None:
    target.answer = answering(500, "broken " + "x" * 5000)
    error = await failure(allowed, url=target.url())

    assert str(error).startswith("the target answered 500 Internal Server Error: broken xxx")
    assert len(str(error)) < 1200
    assert (error.retry_after_seconds, error.dead) == (None, False)


async def test_retry_after_is_honoured(target: Target, allowed: HttpHandler) -> None:
    target.answer = answering(503, Retry_After="120")
    assert (await failure(allowed, url=target.url())).retry_after_seconds == 120

    dates = {"Date": "Wed, 02 Jan 2030 03:04:05 GMT", "Retry_After": "Wed, 02 Jan 2030 03:05:05 GMT"}
    target.answer = answering(429, **dates)
    assert (await failure(allowed, url=target.url())).retry_after_seconds == 60


async def test_410_is_dead(target: Target, allowed: HttpHandler) -> None:
    target.answer = answering(410)

    assert (await failure(allowed, url=target.url())).dead


async def test_no_redirect_is_followed(target: Target, allowed: HttpHandler) -> None:
    target.answer = answering(302, Location=target.url("/inner"))
    error = await failure(allowed, url=target.url())

    assert "answered 302 Found (redirects are not followed)" in str(error)
    assert [request.path for request in target.requests] == ["/"]


async def test_only_the_beginning_of_the_answer_is_read(target: Target, allowed: HttpHandler) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"y" * 65536)
            sent += 65536

    target.answer = endless
    result = await allowed.run(CONTEXT, {"url": target.url()})

    assert result == {"status": 200, "body": "y" * 1024}
    assert sent < 50_000_000


async def test_h11_a_slow_target_ends_at_the_deadline(target: Target, allowed: HttpHandler) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b".")
            await asyncio.sleep(0.05)

    target.answer = drip
    error = await failure(allowed, url=target.url(), deadline="PT0.5S")

    assert str(error) == "no complete answer within 0.5 s"
    assert not error.dead


async def test_compressed_answers_are_not_unpacked(target: Target, allowed: HttpHandler) -> None:
    async def bomb(_: web.Request) -> web.Response:
        return web.Response(body=b"\x1f\x8b\x08" + b"\xff" * 20, headers={"Content-Encoding": "gzip"})

    target.answer = bomb
    result = await allowed.run(CONTEXT, {"url": target.url()})

    assert target.requests[0].headers["Accept-Encoding"] == "identity"
    assert result["status"] == 200
    assert len(result["body"]) == 23


async def test_what_is_not_http_is_a_failure(allowed: HttpHandler) -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        error = await failure(allowed, url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert str(error).startswith("the request failed: ")


async def test_a_closed_port_is_a_failure(allowed: HttpHandler) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    error = await failure(allowed, url=f"http://user:secret@127.0.0.1:{port}/")

    assert str(error).startswith("the request failed: ClientConnectorError")
    assert "secret" not in str(error)


FORMS = [
    "http://127.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://017700000001:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.000.000.001:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://127。0。0。1:{port}/",
    "http://example.org@127.0.0.1:{port}/",
    "http://example.org:80@localhost:{port}/",
    "http://127.0.0.1:{port}\\@example.org/",
    "http://127.0.0.1:{port}#@example.org/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127.0.0.1%00.example.org:{port}/",
]


@pytest.mark.parametrize("form", FORMS)
async def test_h10_no_form_of_a_loopback_address_is_connected_to(
    target: Target, strict: HttpHandler, form: str
) -> None:
    error = await failure(strict, url=form.format(port=target.port), deadline="PT10S")

    assert target.connections == 0
    assert str(error).startswith(("target refused: ", "payload.url ", "the request failed: "))


CONNECTING = [
    "http://127.0.0.1:{port}/",
    "http://0x7f000001:{port}/",
    "http://0.0.0.0:{port}/",
    "http://localhost:{port}/",
    "http://example.org@127.0.0.1:{port}/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
]


@pytest.mark.parametrize("form", CONNECTING)
async def test_h10_some_of_those_forms_would_have_reached_it(target: Target, form: str) -> None:
    """Without the policy; the others aiohttp refuses by itself, but nothing here depends on that."""
    handler = HttpHandler(AddressPolicy(allow=["0.0.0.0/0", "::/0"]), SystemClock())
    await handler.run(CONTEXT, {"url": form.format(port=target.port), "deadline": "PT10S"})

    assert target.connections == 1


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "224.0.0.1", "[ff02::1]", "[::ffff:a9fe:a9fe]"])
async def test_h10_other_inner_addresses(strict: HttpHandler, host: str) -> None:
    assert str(await failure(strict, url=f"http://{host}/latest/meta-data")).startswith("target refused: ")


class Rebinding(AbstractResolver):
    """A name server that answers with one address after the other."""

    def __init__(self, *addresses: list[str]) -> None:
        self._answers = list(addresses)
        self.asked = 0

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        self.asked += 1
        addresses = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in addresses
        ]

    async def close(self) -> None:
        pass


async def test_a60_a_name_that_resolves_to_loopback_at_run_time(target: Target) -> None:
    handler = HttpHandler(AddressPolicy(), SystemClock(), resolver=Rebinding(["127.0.0.1"]))
    error = await failure(handler, url=f"http://rebind.example:{target.port}/")

    assert str(error) == "target refused: 127.0.0.1 is a loopback address"
    assert target.connections == 0


async def test_a60_a_name_that_changes_its_address(target: Target) -> None:
    """The address that was judged is the one that is connected to: the name is asked once per connection."""
    resolver = Rebinding(["192.0.2.1"], ["127.0.0.1"])
    handler = HttpHandler(AddressPolicy(), SystemClock(), resolver=resolver)
    first = await failure(handler, url=f"http://rebind.example:{target.port}/", deadline="PT0.5S")
    second = await failure(handler, url=f"http://rebind.example:{target.port}/", deadline="PT0.5S")

    assert "refused" not in str(first)
    assert str(second).startswith("target refused: ")
    assert (resolver.asked, target.connections) == (2, 0)


async def test_a60_among_several_addresses_only_permitted_ones_are_tried(target: Target) -> None:
    handler = HttpHandler(
        AddressPolicy(deny=["192.0.2.0/24"]), SystemClock(), resolver=Rebinding(["127.0.0.1", "192.0.2.7"])
    )
    error = await failure(handler, url=f"http://rebind.example:{target.port}/")

    assert "127.0.0.1 is a loopback address" in str(error)
    assert "192.0.2.7 is on the deny list" in str(error)
    assert target.connections == 0


async def test_a60_a_redirect_to_loopback(target: Target) -> None:
    """The first address is allowed, the second would not be; it is never asked for."""
    target.answer = answering(302, Location=f"http://[::1]:{target.port}/inner")
    handler = HttpHandler(AddressPolicy(allow=["127.0.0.1"]), SystemClock())
    error = await failure(handler, url=target.url())

    assert "302" in str(error)
    assert (target.connections, len(target.requests)) == (1, 1)


async def test_proxies_of_the_environment_are_not_used(
    target: Target, strict: HttpHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", target.url())
    error = await failure(strict, url="http://192.0.2.1/", deadline="PT0.3S")

    assert isinstance(error, Fail)
    assert target.connections == 0


async def test_a_cancelled_request_lets_go_of_its_connection(target: Target, allowed: HttpHandler) -> None:
    arrived = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    target.answer = hang
    run = asyncio.create_task(allowed.run(CONTEXT, {"url": target.url()}))
    await arrived.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
