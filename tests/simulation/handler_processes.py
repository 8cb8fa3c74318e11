"""What stands in for the guard and for handler processes, which are processes of their own beside the worker.

Invariants: as of the real guard: it ends the worker at its deadline also while the worker hangs, but gives one
that was stopped WAKE_SECONDS of running time; when the worker is gone, so are its handler processes.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any
from uuid import UUID

from ringcron_shard_worker.execution.guard import WAKE_SECONDS
from ringcron_shard_worker.handler_process.outcome import Ended
from tests.simulation.event_loop import this_process
from tests.simulation.referee import ActiveRun


class Guard:
    """Of one worker; in the place of GuardLink."""

    pid = None
    up = True

    def __init__(self, clock: Any, on_failure: Any) -> None:
        self._process = this_process()
        self._loop = self._process.world.loop
        self._deadline = inf

    async def start(self) -> None:
        """It is there."""

    async def ready(self, seconds: float) -> bool:
        return True

    async def close(self) -> None:
        self._deadline = inf

    def watch(self, group: int, deadline: float) -> None:
        """Handler processes look after their own limits here."""

    forget = watch

    def worker_deadline(self, deadline: float) -> None:
        self._deadline = deadline
        if deadline < inf:
            self._loop.after(self._process.true_time(deadline) - self._loop.now, self._look, deadline)

    def _look(self, deadline: float) -> None:
        process, now = self._process, self._loop.now
        if deadline != self._deadline or not process.alive:
            return
        if process.stopped_at is not None:
            # A machine that sleeps has no guard awake; a stopped process's guard waits for it to go on.
            self._loop.after(0.25, self._look, deadline)
        elif now < process.resumed_at + WAKE_SECONDS:
            self._loop.after(process.resumed_at + WAKE_SECONDS - now, self._look, deadline)
        else:
            process.world.trace("guard", process.id, "ends the worker")
            process.die()


class HandlerProcess:
    """Runs one quarantined job; it ends by itself, by its limit, or with its worker."""

    pid = 0
    alive = True

    def __init__(self, guard: Guard) -> None:
        self._worker = this_process()
        self._world: Any = self._worker.world
        self._run: ActiveRun | None = None
        self._limit = inf
        self._ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._worker.at_death.append(lambda: self._end(Ended(died=True)))

    async def begin(self, message: dict[str, Any]) -> bool:
        if self._ended.done():
            return False
        payload, failing = message["payload"], message["attempt"] <= message["payload"]["failures"]
        self._run = self._world.referee.begins(self._worker, UUID(message["job_id"]), message["lease_generation"])
        ended = Ended(error="as planned") if failing else Ended()
        self._world.loop.after(payload["seconds"], self._end, ended)
        return True

    async def ended(self) -> Ended:
        return await asyncio.shield(self._ended)

    def ask_to_stop(self, run_id: str) -> None:
        self._world.loop.after(0.05, self._end, Ended(stopped=True))

    def limit(self, at: float) -> None:
        self._limit = at
        if at < inf:
            self._world.loop.after(self._worker.true_time(at) - self._world.loop.now, self._at_limit, at)

    def _at_limit(self, at: float) -> None:
        if at == self._limit:
            self._end(Ended(error="killed", died=True))

    async def end(self, *, kill: bool) -> None:
        self._end(Ended(error="killed", died=True))

    def kill_without_guard(self) -> None:
        self._end(Ended(error="killed", died=True))

    def _end(self, ended: Ended) -> None:
        if not self._ended.done():
            self._ended.set_result(ended)
            if self._run is not None:
                self._world.referee.ends(self._run)


class HandlerPool:
    """In the place of the pool: every run has a process of its own."""

    def __init__(self, hello: Any, guard: Guard, clock: Any, *, idle_seconds: float) -> None:
        self._guard = guard

    def warm_up(self) -> None:
        """Nothing is slow here."""

    async def take(self) -> HandlerProcess:
        await asyncio.sleep(0.02)
        return HandlerProcess(self._guard)

    def give_back(self, process: HandlerProcess) -> None:
        """Not used again."""

    async def discard(self, process: HandlerProcess) -> None:
        await process.end(kill=True)

    def kill_without_guard(self) -> None:
        """The guard does not fail here."""

    async def close(self) -> None:
        """Runs end with their worker."""
