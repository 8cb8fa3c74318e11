"""The programs as the simulation starts them: the real Worker and Coordinator, and a handler that does as planned."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Coroutine
from typing import Any

from ringcron.handlers import Handler, HandlerRegistry
from ringcron.settings import CoordinatorSettings, WorkerSettings
from ringcron_coordinator.coordinator import Coordinator
from ringcron_shard_worker.builtin import BuiltinSettings
from ringcron_shard_worker.execution import Execution
from ringcron_shard_worker.lease_keeper import GRACE_SHARE
from ringcron_shard_worker.slice_holder import SliceHolder
from ringcron_shard_worker.worker import Worker
from tests.simulation import plan as plans
from tests.simulation.event_loop import this_process
from tests.simulation.process import Process
from tests.simulation.referee import Violation
from tests.simulation.world import World

_BUILTIN = BuiltinSettings()


class _WatchedHolder(SliceHolder):
    """Has the referee look whenever it may have come to hold something."""

    def _tell(self) -> None:
        super()._tell()
        this_process().world.referee.holders_changed()


async def _handler(context: Any, payload: Any) -> None:
    process = this_process()
    referee = process.world.referee
    run = referee.begins(process, context.job_id, context.lease_generation)
    try:
        await asyncio.sleep(payload["seconds"])
        if context.attempt <= payload["failures"]:
            raise ValueError("as planned")
    except asyncio.CancelledError:
        if payload["stubborn"]:
            await asyncio.sleep(payload["stubborn"])
        raise
    finally:
        if process.alive:
            referee.ends(run)


def _registry(handlers: tuple[str, ...]) -> HandlerRegistry:
    registry = HandlerRegistry()
    for name in handlers:
        registry._handlers[name] = Handler(name=name, function=_handler, is_async=True, reference=name)
    return registry


def start_worker(world: World, seat: str) -> Process:
    """A new worker in a seat."""
    process = world.new_process(seat)
    capacity, handlers = next((capacity, handlers) for name, capacity, handlers in world.plan.workers if name == seat)
    settings = WorkerSettings(
        database_url="",
        zookeeper="z",
        name=seat,
        concurrency=capacity,
        session_seconds=plans.SESSION_SECONDS,
        lease_seconds=plans.LEASE_SECONDS,
        poll_seconds=plans.POLL_SECONDS,
        drain_seconds=1.0,
        bell="poll",
    )

    async def main() -> None:
        execution = Execution(
            _registry(handlers),
            process,
            modules=(),
            builtin=_BUILTIN,
            grace_seconds=settings.lease_seconds * GRACE_SHARE,
        )
        process.holder = _WatchedHolder(settings, worker_id=process.id, handlers=handlers, clock=process)
        process.body = Worker(
            settings,
            worker_id=process.id,
            handlers=handlers,
            holder=process.holder,
            execution=execution,
            clock=process,
        )
        await _to_the_end(process, process.body.run(process.drain))

    world.loop.spawn(process, main)
    return process


def start_coordinator(world: World, seat: str) -> Process:
    """A new coordinator in a seat."""
    process = world.new_process(seat)
    settings = CoordinatorSettings(
        database_url="",
        zookeeper="z",
        name=seat,
        session_seconds=plans.SESSION_SECONDS,
        quiet_seconds=plans.QUIET_SECONDS,
        quiet_cap_seconds=plans.QUIET_CAP_SECONDS,
        ack_seconds=plans.ACK_SECONDS,
        relist_seconds=5.0,
    )

    async def main() -> None:
        process.body = Coordinator(settings, id=process.id, clock=process)
        await _to_the_end(process, process.body.run(process.drain))

    world.loop.spawn(process, main)
    return process


async def _to_the_end(process: Process, program: Coroutine[Any, Any, None]) -> None:
    try:
        await program
    except Exception as error:
        process.world.violated(
            Violation("no fault of ours", f"{process.id} ended: {error!r} {_place(error)}", process.id)
        )
    process.die()


def _place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"at {frame.filename}:{frame.lineno}"
