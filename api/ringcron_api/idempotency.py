"""Idempotency-Key: a request that is sent again has its effect once, and gets the answer of the first time.

Invariant: the effect and the kept answer are one transaction (`store.calls.answer_once`): everything that the handler
does through `store_of` is committed together with its answer. So a crash at any moment leaves both or neither, for
every call alike; a job id derived from the key would do so for a create, but not for a trigger or a redrive. Whoever
comes while the key is in progress waits for that transaction, in this process (without a connection) or in another.

A key belongs to caller, method and path. The same key with another body or query is refused. Answers that are no
success are not kept: the effect was undone, and the request may be tried again under the same key.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Final

from aiohttp import hdrs, web

from ringcron.clock import Clock
from ringcron.errors import IdempotencyInProgress
from ringcron.store.api import ApiStore
from ringcron.store.idempotency import Answer, KeptAnswer
from ringcron_api.callers import caller_of
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.keys import STORE
from ringcron_api.operations import Handler, Operation
from ringcron_api.problems import Problem
from ringcron_api.requests import put_within, read_body

KEY_HEADER: Final = "Idempotency-Key"
REPLAYED_HEADER: Final = "Idempotency-Replayed"
KEY_LIMIT: Final = 255
WAIT_SECONDS: Final = 2.0
"""How long a request waits for another one with its key."""
_KEPT_HEADERS: Final = (hdrs.CONTENT_TYPE, hdrs.LOCATION)


class AnswerOnce:
    """Lets the calls of one API process take Idempotency-Key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._in_progress: dict[bytes, asyncio.Event] = {}

    def wrap(self, operation: Operation) -> Handler:
        """The operation's handler, for requests with a key and without one."""

        async def handle(request: web.Request) -> web.StreamResponse:
            key = _key_of(request)
            if key is None or request.query.get("dryRun") == "true":  # a rehearsal has no effect
                return await operation.handler(request)
            body = await read_body(request, operation.body_limit)
            key_id = _digest(_caller(request), request.method, request.path, key)
            fingerprint = await asyncio.to_thread(_fingerprint, body, request.query_string)
            return await self._answer(request, operation, key_id, fingerprint)

        return handle

    async def _answer(
        self, request: web.Request, operation: Operation, key_id: bytes, fingerprint: bytes
    ) -> web.Response:
        store = request.app[STORE]
        until = self._clock.elapsed() + WAIT_SECONDS
        while True:
            kept = await store.find_answer(key_id)
            if kept is not None:
                return _replay(kept, fingerprint)
            other = self._in_progress.get(key_id)
            if other is None:
                break
            await self._wait(other, until)
        ended = self._in_progress[key_id] = asyncio.Event()
        try:
            given = await store.answer_once(
                key_id,
                fingerprint,
                lambda within: _given(request, operation.handler, within),
                wait_seconds=max(0.001, until - self._clock.elapsed()),
                seconds=operation.seconds,
            )
        finally:
            del self._in_progress[key_id]
            ended.set()
        return _replay(given, fingerprint) if isinstance(given, KeptAnswer) else _response(given)

    async def _wait(self, other: asyncio.Event, until: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, until - self._clock.elapsed())):
                await other.wait()
        except TimeoutError:
            raise IdempotencyInProgress from None


async def _given(request: web.Request, handler: Handler, within: ApiStore) -> Answer:
    put_within(request, within)
    response = await handler(request)
    assert isinstance(response, web.Response)
    assert response.status < 300
    assert response.body is None or isinstance(response.body, bytes)
    headers = {str(name): response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return Answer(status=response.status, headers=headers, body=response.body or b"")


def _key_of(request: web.Request) -> str | None:
    given = request.headers.getall(KEY_HEADER, [])
    if not given:
        return None
    (key, *more) = given
    if more or not 1 <= len(key) <= KEY_LIMIT or not key.isascii() or not key.isprintable():
        detail = f"must be one text of 1 to {KEY_LIMIT} visible ASCII characters"
        raise ValidationFailed([Fault(pointer=f"/{KEY_HEADER}", code="invalid", detail=detail, place="header")])
    return key


def _caller(request: web.Request) -> str:
    caller = caller_of(request)
    return "" if caller is None else caller.key_id


def _digest(*parts: str) -> bytes:
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).digest()


def _fingerprint(body: bytes, query: str) -> bytes:
    """Of the raw body; and of the query, where there is one."""
    digest = sha256(body)
    if query:
        digest.update(b"\0" + query.encode("utf-8", "surrogateescape"))
    return digest.digest()


def _replay(kept: KeptAnswer, fingerprint: bytes) -> web.Response:
    if kept.fingerprint != fingerprint:
        raise Problem("idempotency-key-reused", "this key came with another request before; send a new one")
    response = _response(kept.answer)
    response.headers[REPLAYED_HEADER] = "true"
    return response


def _response(answer: Answer) -> web.Response:
    return web.Response(body=answer.body or None, status=answer.status, headers=dict(answer.headers))
