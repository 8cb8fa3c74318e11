"""An event loop without a clock, a socket or a thread: time goes on when there is nothing left to do.

Invariant: what is run next is a function of what was scheduled before, so a seed gives one history. Every callback
belongs to the process that scheduled it (by its context); what belongs to a process that is stopped waits for it, and
what belongs to one that is dead is never run, as after SIGSTOP and SIGKILL.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, Final

from tests.simulation.process import Process

PROCESS: Final[ContextVar[Process | None]] = ContextVar("process", default=None)
"""The process that is running; None: the world around them."""


def this_process() -> Process:
    """The process that is running."""
    process = PROCESS.get()
    assert process is not None
    return process


class EventLoop(asyncio.AbstractEventLoop):
    """`run_until` runs it. `now` is true time, which only the world may look at: processes have clocks of their own."""

    def __init__(self, on_fault: Callable[[dict[str, Any]], object]) -> None:
        """`on_fault` is told of an exception that nobody caught."""
        self.now = 0.0
        self.ended = False
        self.tasks: list[asyncio.Task[Any]] = []
        self._on_fault = on_fault
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.Handle]] = []
        self._numbers = count()
        self._world = Context()

    # --- what the world uses ---

    def after(self, seconds: float, callback: Callable[..., object], *arguments: Any) -> asyncio.Handle:
        """Have the world call something, whatever becomes of any process."""
        handle = asyncio.Handle(callback, arguments, self, self._world)
        heapq.heappush(self._timers, (self.now + max(seconds, 0.0), next(self._numbers), handle))
        return handle

    def post(
        self, process: Process, seconds: float, callback: Callable[..., object], *arguments: Any
    ) -> asyncio.Handle:
        """Have a process call something, if it lives and runs then."""
        handle = asyncio.Handle(callback, arguments, self, process.context)
        heapq.heappush(self._timers, (self.now + max(seconds, 0.0), next(self._numbers), handle))
        return handle

    def spawn(self, process: Process, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a process."""
        process.context = Context()
        process.context.run(PROCESS.set, process)
        process.context.run(lambda: process.begun(self.create_task(main())))

    def resume(self, process: Process) -> None:
        """Let a process go on. After a suspension of its machine its timers have not counted the time."""
        since, process.stopped_at = process.stopped_at, None
        assert since is not None
        waiting, process.waiting = process.waiting, []
        process.resumed_at = self.now
        if process.suspended:
            gap = self.now - since
            process.suspended = False
            process.lost_seconds += gap
            theirs = [entry for entry in self._timers if entry[2]._context.get(PROCESS) is process]
            self._timers = [entry for entry in self._timers if entry[2]._context.get(PROCESS) is not process]
            self._timers += [(when + gap, number, handle) for when, number, handle in theirs]
            heapq.heapify(self._timers)
        self._ready.extend(waiting)

    def run_until(self, end: float) -> None:
        """Run everything up to a point in time, or until `ended` is set."""
        ready, timers, running = self._ready, self._timers, asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            while not self.ended:
                while ready:
                    handle = ready.popleft()
                    if handle._cancelled:
                        continue
                    process = handle._context.get(PROCESS)
                    if process is not None and process.holds_back(handle):
                        continue
                    handle._run()
                    if self.ended:
                        return
                timers = self._timers
                if not timers or timers[0][0] > end:
                    self.now = end
                    return
                when, _, handle = heapq.heappop(timers)
                if not handle._cancelled:
                    self.now = max(self.now, when)
                    ready.append(handle)
        finally:
            asyncio._set_running_loop(running)

    def close(self) -> None:
        """Throw away what is still going on."""
        self.ended = True
        self._ready.clear()
        self._timers.clear()
        for task in self.tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine = task.get_coro()
                assert coroutine is not None
                try:
                    coroutine.close()
                except BaseException:
                    pass  # it waits for something while it is being closed
        self.tasks.clear()
        self._ready.clear()
        self._timers.clear()

    # --- what asyncio uses ---

    def time(self) -> float:
        process = PROCESS.get()
        return self.now if process is None else self.now - process.lost_seconds

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context or copy_context())
        process = PROCESS.get()
        true = when if process is None else when + process.lost_seconds
        heapq.heappush(self._timers, (true, next(self._numbers), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self.tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """A thread takes a moment."""
        done = self.create_future()
        value = func(*args)
        self.call_later(0.002, lambda: done.done() or done.set_result(value))
        return done

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.ended:
            self._on_fault(context)
