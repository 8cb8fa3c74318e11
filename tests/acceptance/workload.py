"""Handlers for the acceptance tests. Each says in a file what it does: a witness that is none of our tables."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from typing import Any

from ringcron import Fail, handler


def note(event: str, ctx: Any) -> None:
    """One line, by one write(2): lines of several processes do not mix."""
    line = {
        "event": event,
        "job": str(ctx.job_id),
        "generation": ctx.lease_generation,
        "attempt": ctx.attempt,
        "scheduled_for": ctx.scheduled_for.isoformat(),
        "pid": os.getpid(),
        "at": time.time(),
    }
    descriptor = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, json.dumps(line).encode() + b"\n")
    os.close(descriptor)


@handler("quick")
async def quick(ctx: Any, payload: Any) -> Any:
    note("begin", ctx)
    note("end", ctx)
    return payload


@handler("slow")
async def slow(ctx: Any, payload: Any) -> str:
    note("begin", ctx)
    try:
        await asyncio.sleep(payload["seconds"])
    except asyncio.CancelledError:
        note("cancelled", ctx)
        raise
    note("end", ctx)
    return "slept"


@handler("plain")
def plain(ctx: Any, payload: Any) -> str:
    note("begin", ctx)
    deadline = time.monotonic() + payload["seconds"]
    while time.monotonic() < deadline and not ctx.cancelled:
        time.sleep(0.02)
    note("end", ctx)
    return "done"


@handler("failing")
async def failing(ctx: Any, payload: Any) -> None:
    note("begin", ctx)
    if payload and ctx.attempt > payload.get("times", 1000):
        return
    raise Fail("boom \x00 \ud800" + "x" * 100_000)


@handler("beats")
async def beats(ctx: Any, payload: Any) -> None:
    """Says ten times a second that it still runs, whatever it is asked."""
    deadline = time.monotonic() + payload["seconds"]
    note("begin", ctx)
    while time.monotonic() < deadline:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            if not payload.get("stubborn"):
                raise
        note("beat", ctx)
    note("end", ctx)


@handler("plain-beats")
def plain_beats(ctx: Any, payload: Any) -> None:
    deadline = time.monotonic() + payload["seconds"]
    note("begin", ctx)
    while time.monotonic() < deadline:
        time.sleep(0.1)
        note("beat", ctx)
    note("end", ctx)


@handler("hog")
def hog(ctx: Any, payload: Any) -> None:
    """Holds the GIL in one call of C, for minutes."""
    note("begin", ctx)
    re.match(r"(a+)+$", "a" * payload.get("size", 40) + "b")
    note("end", ctx)


@handler("kill-worker")
async def kill_worker(ctx: Any, payload: Any) -> None:
    """Kills the worker that runs it; in a process of its own, that process's parent, the worker."""
    note("begin", ctx)
    os.kill(_worker(), signal.SIGKILL)
    await asyncio.sleep(60)


def _worker() -> int:
    """The worker: this process, or its parent where this one runs a quarantined job."""
    with open(f"/proc/{os.getpid()}/cmdline", "rb") as file:
        here = b"ringcron\x00worker" in file.read()
    return os.getpid() if here else os.getppid()
