"""Coordinators in this process, fast ones, and what they have published."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from prometheus_client import REGISTRY

from ringcron.assignment import Assignment, decode
from ringcron.clock import SystemClock
from ringcron.settings import CoordinatorSettings
from ringcron.slots import SLOT_COUNT
from ringcron_coordinator.coordinator import Coordinator
from tests.support.fleet import SESSION_SECONDS, Fleet
from tests.support.servers import zookeeper_client
from tests.support.waiting import until

FAST: dict[str, Any] = {
    "session_seconds": SESSION_SECONDS,
    "quiet_seconds": 0.3,
    "quiet_cap_seconds": 2.0,
    "ack_seconds": 1.5,
    "relist_seconds": 2.0,
    "upkeep_seconds": 3600.0,
}


def settings_for(hosts: str | None, database_url: str, **others: Any) -> CoordinatorSettings:
    return CoordinatorSettings(database_url=database_url, zookeeper=hosts, **({"name": "c"} | FAST | others))


@contextlib.asynccontextmanager
async def coordinator_on(settings: CoordinatorSettings, id: str = "c.00000001") -> AsyncIterator[Coordinator]:
    """A coordinator that has drained at the end."""
    coordinator = Coordinator(settings, id=id, clock=SystemClock())
    drain = asyncio.Event()
    task = asyncio.create_task(coordinator.run(drain))
    try:
        yield coordinator
    finally:
        drain.set()
        await asyncio.wait_for(task, 30)


def read_assignment(hosts: str) -> Assignment | None:
    """The assignment as it stands."""
    with zookeeper_client(hosts) as client:
        if not client.exists("/assignment"):
            return None
        return decode(client.get("/assignment")[0], SLOT_COUNT)


def metric(name: str) -> float:
    return REGISTRY.get_sample_value(name) or 0.0


async def settles(fleet: Fleet, *, seconds: float = 15) -> None:
    await until(fleet.is_complete, seconds=seconds, what="the slices are complete, all proven and at one epoch")
