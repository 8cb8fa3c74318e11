"""`http`: one request to a target; 2xx succeeds.

Invariants: every socket is made by `AddressPolicy.sockets`, which judges the very address that is then connected to; no
redirect is followed; nothing of the answer's body beyond BODY_LIMIT is kept; the whole exchange, name look-up included,
is over within the deadline. Proxies of the environment are not used.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver

from ringcron.addresses import AddressPolicy
from ringcron.clock import Clock, SystemClock
from ringcron.handlers import Fail, HandlerRegistry, RunContext
from ringcron_shard_worker.builtin import BuiltinSettings
from ringcron_shard_worker.builtin.http_request import Request, http_date, read_request, retry_after_seconds

BODY_LIMIT: Final = 1024
GONE: Final = 410


class HttpHandler:
    """The handler; `resolver` is for tests of names that change their address."""

    def __init__(self, policy: AddressPolicy, clock: Clock, *, resolver: AbstractResolver | None = None) -> None:
        self._policy = policy
        self._clock = clock
        self._resolver = resolver

    async def run(self, ctx: RunContext, payload: Any) -> dict[str, Any]:
        """Payload {url, method?, headers?, body?, deadline?}; returns {status, body}."""
        request = read_request(ctx, payload)
        refusals: list[str] = []
        try:
            async with asyncio.timeout(request.deadline_seconds):
                return await self._exchange(request, refusals)
        except TimeoutError:
            raise Fail(f"no complete answer within {request.deadline_seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if refusals:
                raise Fail(f"target refused: {', '.join(refusals)}") from None
            raise Fail(f"the request failed: {type(error).__name__}: {error}") from None

    async def _exchange(self, request: Request, refusals: list[str]) -> dict[str, Any]:
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            use_dns_cache=False,
            socket_factory=self._policy.sockets(refusals),
            force_close=True,
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
            ) as session,
            session.request(
                request.method, request.url, headers=request.headers, data=request.body, allow_redirects=False
            ) as response,
        ):
            body = (await _beginning(response.content)).decode(errors="replace")
            if 200 <= response.status < 300:
                return {"status": response.status, "body": body}
            raise self._failure(response, body)

    def _failure(self, response: aiohttp.ClientResponse, body: str) -> Fail:
        said = f"the target answered {response.status} {response.reason or ''}".rstrip()
        if 300 <= response.status < 400:
            said += " (redirects are not followed)"
        answered_at = http_date(response.headers.get("Date")) or self._clock.wall()
        return Fail(
            f"{said}: {body}" if body else said,
            retry_after_seconds=retry_after_seconds(response.headers.get("Retry-After"), answered_at),
            dead=response.status == GONE,
        )


async def _beginning(content: aiohttp.StreamReader) -> bytes:
    try:
        return await content.readexactly(BODY_LIMIT)
    except asyncio.IncompleteReadError as short:
        return short.partial


def register(registry: HandlerRegistry, settings: BuiltinSettings) -> None:
    policy = AddressPolicy(allow=settings.http_allow, deny=settings.http_deny)
    registry.register("http", HttpHandler(policy, SystemClock()).run)
