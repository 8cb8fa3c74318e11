"""The handler processes of a worker: one per run at a time, kept warm between runs.

Invariants: a process is given to one run at a time and comes back only when the run has left nothing behind; what is
not given back is ended. There are never more than runs at one time, plus the first one, started ahead. The longest
idle ones are ended after IDLE_SECONDS.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from ringcron.clock import Clock
from ringcron_shard_worker.execution.guard_link import GuardLink
from ringcron_shard_worker.execution.handler_process import END_SECONDS, HandlerProcess, HandlerProcessUnready
from ringcron_shard_worker.handler_process.frames import Message

IDLE_SECONDS: Final = 60.0

_log = structlog.get_logger(__name__)


class HandlerPool:
    """`hello` is what each process is told first."""

    def __init__(self, hello: Message, guard: GuardLink, clock: Clock, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._hello = hello
        self._guard = guard
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._idle: list[tuple[HandlerProcess, float]] = []  # the one used last is last
        self._starting: set[asyncio.Task[HandlerProcess]] = set()
        self._taken: set[HandlerProcess] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def warm_up(self) -> None:
        """Have one process ready before it is needed."""
        self._start().add_done_callback(self._keep_started)

    async def take(self) -> HandlerProcess:
        """A process for one run. HandlerProcessUnready where none can be started."""
        while self._idle:
            process, _ = self._idle.pop()
            if process.alive:
                self._taken.add(process)
                return process
            self._end(process, kill=True)
        start = self._start()
        try:
            process = await asyncio.shield(start)
        except asyncio.CancelledError:
            start.add_done_callback(self._keep_started)  # the next run may use it
            raise
        self._taken.add(process)
        return process

    def give_back(self, process: HandlerProcess) -> None:
        """The run is over and has left nothing behind."""
        self._taken.discard(process)
        process.limit(float("inf"))
        self._idle.append((process, self._clock.elapsed()))
        self._end_idle_later()

    async def discard(self, process: HandlerProcess) -> None:
        """Kill the process and what else is in its session; returns when it is gone."""
        try:
            await process.end(kill=True)
        finally:
            self._taken.discard(process)

    def kill_without_guard(self) -> None:
        """Kill every process that has a run, itself: there is no guard."""
        for process in self._taken:
            process.kill_without_guard()

    async def close(self) -> None:
        """End every process."""
        if self._timer is not None:
            self._timer.cancel()
        if self._starting:
            await asyncio.wait(self._starting, timeout=END_SECONDS)
        for start in list(self._starting):
            start.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        for process, _ in self._idle:
            self._end(process, kill=False)
        self._idle.clear()
        for process in list(self._taken):
            self._end(process, kill=True)
        await asyncio.gather(*self._ending)

    def _start(self) -> asyncio.Task[HandlerProcess]:
        start = asyncio.create_task(HandlerProcess.start(self._hello, self._guard), name="handler process start")
        self._starting.add(start)
        start.add_done_callback(self._starting.discard)
        return start

    def _keep_started(self, start: asyncio.Task[HandlerProcess]) -> None:
        if start.cancelled():
            return
        error = start.exception()
        if error is None:
            self._idle.append((start.result(), self._clock.elapsed()))
            self._end_idle_later()
        elif isinstance(error, HandlerProcessUnready):
            _log.error("no handler process is ready", error=str(error))
        else:
            _log.error("no handler process is ready", exc_info=error)

    def _end_idle_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._end_idle)

    def _end_idle(self) -> None:
        self._timer = None
        longest_since = self._clock.elapsed() - self._idle_seconds
        while len(self._idle) > 1 and self._idle[0][1] <= longest_since:
            self._end(self._idle.pop(0)[0], kill=False)
        if len(self._idle) > 1:
            self._end_idle_later()

    def _end(self, process: HandlerProcess, *, kill: bool) -> None:
        ending = asyncio.create_task(process.end(kill=kill))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
