"""A run that is going: in the event loop or in a handler process, behind one interface."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final, Protocol

import structlog

from ringcron.clock import Clock
from ringcron.handlers import Handler
from ringcron_shard_worker.execution.handler_process import HandlerProcess, HandlerProcessUnready
from ringcron_shard_worker.execution.pool import HandlerPool
from ringcron_shard_worker.execution.request import RunRequest
from ringcron_shard_worker.execution.worker_deadline import WorkerDeadline
from ringcron_shard_worker.handler_process.context import Context
from ringcron_shard_worker.handler_process.frames import Message
from ringcron_shard_worker.handler_process.outcome import Ended, raised, returned

EXIT_STATUS: Final = 70
"""Of a worker that leaves because a handler in its event loop does not let go."""
PROCESSES_TRIED: Final = 3
AIM_SECONDS: Final = 0.2
"""A process whose limit is nearer than this is not used again: the guard may be about to kill it."""


class Going(Protocol):
    """What supervision needs of a run."""

    own_process: bool
    done: asyncio.Task[Ended]
    began_at: float | None
    """When (elapsed) the handler was called; None before."""

    def listen(self, listener: Callable[[], object]) -> None:
        """Call `listener` when the handler was called and when it has ended."""
        ...

    def ended(self) -> Ended:
        """How it ended, once it is done. HandlerProcessUnready where it could not even begin."""
        ...

    def where(self) -> str | None:
        """Where in the code it is, as far as that is known."""
        ...

    def ask(self) -> None:
        """Ask it to stop."""
        ...

    def limit(self, at: float) -> None:
        """Have the guard end it at this instant (elapsed seconds)."""
        ...


class GoingInLoop:
    """An async handler in the worker's event loop. Nothing can end it but itself, or the end of the worker."""

    own_process = False

    def __init__(self, handler: Handler, request: RunRequest, deadline: WorkerDeadline, clock: Clock) -> None:
        self._handler = handler
        self._request = request
        self._deadline = deadline
        self._asked = False
        self._context = Context(
            job_id=request.job_id,
            run_id=request.run_id,
            scheduled_for=request.scheduled_for,
            attempt=request.attempt,
            lease_generation=request.lease_generation,
        )
        self.began_at: float | None = clock.elapsed()
        self.done = asyncio.create_task(self._call(), name=f"run {request.run_id}")
        self.done.add_done_callback(lambda _: deadline.drop(self))

    async def _call(self) -> Ended:
        structlog.contextvars.bind_contextvars(job=str(self._request.job_id), run=self._request.run_id)
        try:
            value = await self._handler.function(self._context, self._request.payload)
        except asyncio.CancelledError as error:
            return raised(error, stopped=self._asked)
        except BaseException as error:
            return raised(error, stopped=self._asked)
        return returned(value, stopped=self._asked)

    def ask(self) -> None:
        if self.done.cancel():
            self._asked = True
            self._context.ask_to_stop()

    def limit(self, at: float) -> None:
        if not self.done.done():
            self._deadline.put(self, at)

    def listen(self, listener: Callable[[], object]) -> None:
        self.done.add_done_callback(lambda _: listener())

    def ended(self) -> Ended:
        return _result(self.done)

    def where(self) -> str | None:
        frame = getattr(getattr(self.done.get_coro(), "cr_await", None), "cr_frame", None)  # the handler's own
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None


class GoingInProcess:
    """A plain function, a command or a quarantined job, in a handler process."""

    own_process = True

    def __init__(self, handler: Handler, request: RunRequest, pool: HandlerPool, clock: Clock) -> None:
        self._request = request
        self._pool = pool
        self._process: HandlerProcess | None = None
        self._limit: float | None = None
        self._asked = False
        self._clock = clock
        self._listener: Callable[[], object] | None = None
        self.began_at: float | None = None
        self.done = asyncio.create_task(self._run(_message(handler, request)), name=f"run {request.run_id}")

    async def _run(self, message: Message) -> Ended:
        for _ in range(PROCESSES_TRIED):
            try:
                process = await self._pool.take()
            except asyncio.CancelledError:
                return Ended(stopped=True)
            ended = await self._run_in(process, message)
            if ended is not None:
                return ended
        raise HandlerProcessUnready(f"{PROCESSES_TRIED} handler processes ended before the run had begun")

    async def _run_in(self, process: HandlerProcess, message: Message) -> Ended | None:
        """None where the process went away before the run had begun: an idle one may just have been killed."""
        clean = False
        try:
            self._process = process
            if self._limit is not None:
                process.limit(self._limit)
            if not await process.begin(message):
                return Ended(stopped=True) if self._asked else None
            self.began_at = self._clock.elapsed()
            if self._listener is not None:
                self._listener()
            ended = await process.ended()
            spared = self._limit is None or self._limit > self._clock.elapsed() + AIM_SECONDS
            clean = spared and not (ended.died or ended.left_behind or self._request.solo)
        finally:
            self._process = None
            if clean:
                self._pool.give_back(process)
            else:
                await self._pool.discard(process)
        return ended

    def ask(self) -> None:
        self._asked = True
        if self._process is not None:
            self._process.ask_to_stop(self._request.run_id)
        elif self.began_at is None:
            self.done.cancel()

    def limit(self, at: float) -> None:
        self._limit = at
        if self._process is not None:
            self._process.limit(at)

    def listen(self, listener: Callable[[], object]) -> None:
        self._listener = listener
        self.done.add_done_callback(lambda _: listener())

    def ended(self) -> Ended:
        return _result(self.done)

    def where(self) -> str | None:
        return f"handler process {self._process.pid}" if self._process is not None else None


def _result(done: asyncio.Task[Ended]) -> Ended:
    return Ended(stopped=True) if done.cancelled() else done.result()  # cancelled before it began


def _message(handler: Handler, request: RunRequest) -> dict[str, Any]:
    return {
        "handler": handler.name,
        "job_id": str(request.job_id),
        "run_id": request.run_id,
        "scheduled_for": request.scheduled_for.isoformat(),
        "attempt": request.attempt,
        "lease_generation": request.lease_generation,
        "payload": request.payload,
    }


def leave() -> None:
    """End the worker at once; the guard ends its handler processes."""
    os._exit(EXIT_STATUS)
