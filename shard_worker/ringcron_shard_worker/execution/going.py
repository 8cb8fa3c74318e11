"""A run that is going in a handler process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final

from ringcron.clock import Clock
from ringcron.handlers import Handler
from ringcron_shard_worker.execution.handler_process import HandlerProcess, HandlerProcessUnready
from ringcron_shard_worker.execution.pool import HandlerPool
from ringcron_shard_worker.execution.request import RunRequest
from ringcron_shard_worker.handler_process.frames import Message
from ringcron_shard_worker.handler_process.outcome import Ended

EXIT_STATUS: Final = 70
"""Of a worker that leaves because a handler in its event loop does not let go."""
PROCESSES_TRIED: Final = 3
AIM_SECONDS: Final = 0.2
"""A process whose limit is nearer than this is not used again: the guard may be about to kill it."""


class GoingInProcess:
    """A plain function, a command or a quarantined job, in a handler process."""

    def __init__(self, handler: Handler, request: RunRequest, pool: HandlerPool, clock: Clock) -> None:
        self._request = request
        self._pool = pool
        self._process: HandlerProcess | None = None
        self._limit: float | None = None
        self._asked = False
        self._clock = clock
        self._listener: Callable[[], object] | None = None
        self.began_at: float | None = None
        """When (elapsed) the handler was called; None before."""
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
        """Ask it to stop."""
        self._asked = True
        if self._process is not None:
            self._process.ask_to_stop(self._request.run_id)
        elif self.began_at is None:
            self.done.cancel()

    def limit(self, at: float) -> None:
        """Have the guard end it at this instant (elapsed seconds)."""
        self._limit = at
        if self._process is not None:
            self._process.limit(at)

    def listen(self, listener: Callable[[], object]) -> None:
        """Call `listener` when the handler was called and when it has ended."""
        self._listener = listener
        self.done.add_done_callback(lambda _: listener())

    def ended(self) -> Ended:
        """How it ended, once it is done. HandlerProcessUnready where it could not even begin."""
        return Ended(stopped=True) if self.done.cancelled() else self.done.result()  # cancelled before it began

    def where(self) -> str | None:
        """Where it is, as far as that is known."""
        return f"handler process {self._process.pid}" if self._process is not None else None


def _message(handler: Handler, request: RunRequest) -> dict[str, Any]:
    return {
        "handler": handler.name,
        "job_id": str(request.job_id),
        "run_id": request.run_id,
        "scheduled_for": request.scheduled_for.isoformat(),
        "attempt": request.attempt,
        "lease_generation": request.lease_generation,
        "traceparent": request.traceparent,
        "tracestate": request.tracestate,
        "payload": request.payload,
    }


def leave() -> None:
    """End the worker at once; the guard ends its handler processes."""
    os._exit(EXIT_STATUS)
