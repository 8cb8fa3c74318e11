"""Handlers that behave well and badly, for the tests of the execution; loaded as a --handlers module."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from typing import Any

from ringcron import Fail, RunContext, handler
from tests.support.marker import Marker


@handler("echo")
async def echo(ctx: RunContext, payload: Any) -> Any:
    return {"payload": payload, "run": ctx.run_id, "attempt": ctx.attempt, "pid": os.getpid(), "trace": ctx.traceparent}


@handler("echo-sync")
def echo_sync(ctx: RunContext, payload: Any) -> Any:
    return {"payload": payload, "run": ctx.run_id, "attempt": ctx.attempt, "pid": os.getpid(), "trace": ctx.traceparent}


@handler("give")
async def give(_: RunContext, payload: Any) -> Any:
    """Returns what the expression in the payload makes."""
    return eval(payload)


@handler("raise")
async def raise_(_: RunContext, payload: Any) -> None:
    """Raises what the expression in the payload makes."""
    raise eval(payload)


@handler("raise-sync")
def raise_sync(_: RunContext, payload: Any) -> None:
    raise eval(payload)


@handler("refuse")
async def refuse(_: RunContext, __: Any) -> None:
    raise Fail("not today", retry_after_seconds=90, dead=True)


@handler("chained")
async def chained(_: RunContext, __: Any) -> None:
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError("outer") from error


@handler("wait")
async def wait(_: RunContext, payload: Any) -> None:
    """Waits for ever; writes its pid to the file of the payload first, and `cancelled` at the end."""
    Marker(payload).say_pid()
    try:
        await asyncio.Event().wait()
    finally:
        Marker(payload).say("cancelled")


@handler("swallow")
async def swallow(_: RunContext, payload: Any) -> None:
    """Goes on whatever it is told."""
    Marker(payload).say_pid()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            Marker(payload).sibling("asked").say("asked")


@handler("finish-late")
async def finish_late(_: RunContext, payload: Any) -> str:
    """Swallows the cancellation and ends only when the file `<payload>.go` is there."""
    Marker(payload).say("started")
    while not Marker(payload).sibling("go").said():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            Marker(payload).sibling("asked").say("asked")
    return "finished"


@handler("block-loop")
async def block_loop(_: RunContext, payload: Any) -> None:
    Marker(payload).say_pid()
    while True:
        time.sleep(0.1)  # noqa: ASYNC251 - the fault that is tested


@handler("hold-gil")
def hold_gil(_: RunContext, payload: Any) -> None:
    """A C call that never lets go of the GIL."""
    Marker(payload).say_pid()
    re.match(r"(a+)+$", "a" * 64 + "b")


@handler("hold-gil-async")
async def hold_gil_async(_: RunContext, payload: Any) -> None:
    Marker(payload).say_pid()
    re.match(r"(a+)+$", "a" * 64 + "b")


@handler("until-cancelled")
def until_cancelled(ctx: RunContext, payload: Any) -> str:
    """The polite way: looks at ctx.cancelled."""
    Marker(payload).say_pid()
    while not ctx.cancelled:
        time.sleep(0.01)
    return "left early"


@handler("until-file")
def until_file(_: RunContext, payload: Any) -> str:
    """Never looks at ctx.cancelled; ends when `<payload>.go` is there."""
    Marker(payload).say_pid()
    while not Marker(payload).sibling("go").said():
        time.sleep(0.01)
    return "did all of it"


@handler("die")
def die(_: RunContext, payload: Any) -> None:
    """Ends its own process: by a signal (negative) or with a status."""
    if payload < 0:
        os.kill(os.getpid(), -payload)
    os._exit(payload)


@handler("leave-child")
def leave_child(_: RunContext, payload: Any) -> int:
    """Leaves a child behind, in a group of its own if the payload says so."""
    return subprocess.Popen(["sleep", "1000"], process_group=0 if payload == "own group" else None).pid


@handler("start-children")
async def start_children(_: RunContext, payload: Any) -> None:
    """In the event loop: a program, a forked copy of the worker, and a daemon; writes their pids."""
    program = await asyncio.create_subprocess_exec("sleep", "1000")
    copy = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,), daemon=True)
    copy.start()
    daemon = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
    Marker(payload).say(f"{program.pid} {copy.pid} {daemon.pid}")
    await asyncio.Event().wait()


@handler("leave-thread")
def leave_thread(_: RunContext, __: Any) -> int:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return os.getpid()


@handler("print")
def print_(_: RunContext, payload: Any) -> None:
    sys.stdout.write(f"{payload}\n")


@handler("log-plainly")
def log_plainly(_: RunContext, payload: Any) -> None:
    logging.getLogger("reports").info("made %s", payload)


@handler("async-in-disguise")
def async_in_disguise(ctx: RunContext, payload: Any) -> Any:
    """A plain function that returns an awaitable."""
    return echo(ctx, payload)
