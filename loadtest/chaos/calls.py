"""Calls of the API, and what became of each: done, refused, or nobody knows.

Invariant: a call is written down with its invocation and its end, whatever happened between; an answer that did not
come in time, a cut connection and a 5xx are `info`, never `fail`. A create is tried again under its Idempotency-Key, as
a careful client does, so nearly all of them end up known.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
from collections import Counter
from typing import Any, Final

import aiohttp

from loadtest.chaos.history import Call
from ringcron.clock import SystemClock

ANSWER_SECONDS: Final = 10.0
TRY_SECONDS: Final = 120.0
"""For so long a create is tried again."""
PAUSE_SECONDS: Final = (0.5, 8.0)
"""Between two tries: from, doubling, to. A client that hammers keeps a busy server busy."""
CONNECTIONS: Final = 64


class Caller:
    """A client of the API. `calls` in the elapsed clock's seconds until they are carried over."""

    def __init__(self, port: int) -> None:
        self.calls: list[Call] = []
        self.counts: Counter[str] = Counter()
        """How often what happened: statuses by kind, replays, disconnects."""
        self.out = 0
        """Calls that wait for their answer now."""
        self.usual_seconds = 0.0
        """How long an answer has taken lately."""
        self._url = f"http://127.0.0.1:{port}"
        self._port = port
        self._clock = SystemClock()
        self._session: aiohttp.ClientSession | None = None
        self._stopping = False

    async def __aenter__(self) -> Caller:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS), connector=aiohttp.TCPConnector(limit=CONNECTIONS)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    def stop_trying(self) -> None:
        """No create is tried again from now on."""
        self._stopping = True

    async def create(self, job: dict[str, Any], *, idempotency_key: str | None = None) -> str | None:
        """Create a job; its id, None where it was refused or is unknown to the end."""
        key = idempotency_key or secrets.token_hex(12)
        deadline = self._clock.elapsed() + TRY_SECONDS
        pause, longest = PAUSE_SECONDS
        while True:
            invoked = self._clock.elapsed()
            status, answer = await self._send("POST", "/jobs", job, key)
            job_id = answer.get("jobId") if status in (200, 201) else None
            outcome = _outcome(status, done=(200, 201), unknown=(409,))  # 409: another try of ours is in progress
            self._note("create", invoked, outcome, status, job_id, job["name"])
            if outcome != "info":
                return job_id
            if self._stopping or self._clock.elapsed() > deadline:
                return None
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(longest, pause * 2)

    async def cancel(self, job_id: str) -> int | None:
        """Cancel a job, once; the status, None where there was no answer."""
        invoked = self._clock.elapsed()
        status, _ = await self._send("DELETE", f"/jobs/{job_id}", None, None)
        self._note("cancel", invoked, _outcome(status, done=(204,)), status, job_id, None)
        return status

    async def patch(self, job_id: str, change: dict[str, Any]) -> int | None:
        """Change a job's definition; the status. Not part of the history: its rows are."""
        status, _ = await self._send("PATCH", f"/jobs/{job_id}", change, None)
        self.counts[f"patch {status}"] += 1
        return status

    async def create_and_leave(self, job: dict[str, Any], idempotency_key: str) -> None:
        """Send a create and go away before the answer."""
        body = json.dumps(job).encode()
        invoked = self._clock.elapsed()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(_head("POST", "/jobs", len(body), idempotency_key) + body)
            await writer.drain()
            writer.transport.abort()
        except OSError:
            pass  # the API is away: then nothing was sent
        self.counts["disconnects"] += 1
        self._note("create", invoked, "info", None, None, job["name"])

    async def dawdle(self, seconds: float) -> None:
        """A client that sends half a head, and then nothing."""
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(_head("POST", "/jobs", 100, "slow")[:60])
            await writer.drain()
            await asyncio.sleep(seconds)
            writer.transport.abort()
        except OSError:
            pass  # as good as slow
        self.counts["slow sockets"] += 1

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None, idempotency_key: str | None
    ) -> tuple[int | None, dict[str, Any]]:
        assert self._session is not None
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        sent = self._clock.elapsed()
        self.out += 1
        try:
            async with self._session.request(method, self._url + path, json=body, headers=headers) as response:
                text = await response.read()
                self.counts["replayed"] += response.headers.get("Idempotency-Replayed") == "true"
                return response.status, json.loads(text) if text and response.status < 300 else {}
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return None, {}
        finally:
            self.out -= 1
            self.usual_seconds += 0.2 * (self._clock.elapsed() - sent - self.usual_seconds)

    def _note(
        self, kind: Any, invoked: float, outcome: Any, status: int | None, job_id: str | None, key: str | None
    ) -> None:
        self.counts[f"{kind} {status or 'without an answer'}"] += 1
        self.calls.append(
            Call(
                kind=kind,
                invoked=invoked,
                ended=self._clock.elapsed(),
                outcome=outcome,
                status=status,
                job=job_id,
                key=key,
            )
        )


def _outcome(status: int | None, *, done: tuple[int, ...], unknown: tuple[int, ...] = ()) -> str:
    if status in done:
        return "ok"
    if status is None or status >= 500 or status == 429 or status in unknown:
        return "info"
    return "fail"


def _head(method: str, path: str, length: int, idempotency_key: str) -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: api\r\nContent-Type: application/json\r\nIdempotency-Key: "
        f"{idempotency_key}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()
