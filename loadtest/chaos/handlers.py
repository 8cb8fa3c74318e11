"""The handlers of chaos jobs: they tell the sink of their begin and end.

A worker imports this module, so it imports next to nothing. The payload:

    seconds  how long a run takes           hasty  whether its end is left untold
    fail     up to which attempt it fails   do     what it does to its process: `spin` keeps it busy, `exit` ends it,
                                                   `fork` leaves a child behind

Invariant: nothing is done before the sink has answered the begin. An end that cannot be told is left untold.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import time
from typing import Any, Final

from loadtest.chaos.sink import ADDRESS_VARIABLE
from ringcron import RunContext, handler
from ringcron.clock import SystemClock

ASYNC: Final = "chaos"
PLAIN: Final = "chaos-plain"
"""A plain function: it runs in a handler process."""
TELL_SECONDS: Final = 10.0
CHILD_SECONDS: Final = 60.0

_host, _, _port = os.environ.get(ADDRESS_VARIABLE, "127.0.0.1:0").partition(":")
_worker: Final = os.environ.get("RINGCRON_WORKER_NAME", "")


class Planned(Exception):
    """The failure that the payload asked for."""


@handler(ASYNC)
async def run(ctx: RunContext, payload: Any) -> None:
    """Begin, take as long as told, end."""
    token = secrets.token_hex(6)
    await _tell(_request("begin", token, ctx))
    _misbehave(payload)
    if payload.get("hasty"):
        await asyncio.sleep(payload["seconds"])
        return
    try:
        await asyncio.sleep(payload["seconds"])
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            await _tell(_request("end", token, ctx))
    _fail_as_told(ctx, payload)


@handler(PLAIN)
def run_plainly(ctx: RunContext, payload: Any) -> None:
    """The same in a process of its own."""
    token = secrets.token_hex(6)
    _tell_plainly(_request("begin", token, ctx))
    _misbehave(payload)
    try:
        time.sleep(payload["seconds"])
    finally:
        with contextlib.suppress(OSError):
            _tell_plainly(_request("end", token, ctx))
    _fail_as_told(ctx, payload)


def _misbehave(payload: Any) -> None:
    what = payload.get("do")
    if what == "exit":
        os._exit(7)
    elif what == "spin":
        clock = SystemClock()
        until = clock.elapsed() + payload["seconds"]
        while clock.elapsed() < until:
            sum(range(1_000_000))  # holds the interpreter's lock all the while
    elif what == "fork" and os.fork() == 0:
        time.sleep(CHILD_SECONDS)
        os._exit(0)


def _fail_as_told(ctx: RunContext, payload: Any) -> None:
    if ctx.attempt <= payload.get("fail", 0):
        raise Planned(f"attempt {ctx.attempt} was to fail")


def _request(what: str, token: str, ctx: RunContext) -> bytes:
    body = json.dumps(
        {
            "what": what,
            "token": token,
            "job": str(ctx.job_id),
            "generation": ctx.lease_generation,
            "scheduledFor": ctx.scheduled_for.timestamp(),
            "attempt": ctx.attempt,
            "worker": _worker,
            "pid": os.getpid(),
        }
    ).encode()
    head = (
        f"POST /{what} HTTP/1.1\r\nHost: sink\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _tell(request: bytes) -> None:
    async with asyncio.timeout(TELL_SECONDS):
        reader, writer = await asyncio.open_connection(_host, int(_port))
        try:
            writer.write(request)
            await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            raise ConnectionError("the sink gave no answer") from error
        finally:
            writer.close()


def _tell_plainly(request: bytes) -> None:
    with socket.create_connection((_host, int(_port)), timeout=TELL_SECONDS) as connection:
        connection.sendall(request)
        if not connection.recv(1024):
            raise ConnectionError("the sink gave no answer")
