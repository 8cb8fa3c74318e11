"""Light workers: many members in one process, each with a ZooKeeper session of its own, and none of the running."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Self

from ringcron.clock import Clock, SystemClock
from ringcron.settings import WorkerSettings
from ringcron.slots import SLOT_COUNT
from ringcron_shard_worker.slice_holder import SliceHolder

SESSION_SECONDS = 2.0
HANDLERS = ("http", "log")


class Light(SliceHolder):
    """A slice holder with a name."""

    def __init__(
        self,
        hosts: str | None,
        name: str,
        *,
        handlers: tuple[str, ...] = HANDLERS,
        capacity: int = 10,
        session_seconds: float = SESSION_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        settings = WorkerSettings(
            database_url="postgresql://nowhere.invalid/none",
            zookeeper=hosts,
            session_seconds=session_seconds,
            name=name,
            concurrency=capacity,
        )
        self.name = name
        self.id = f"{name}.{secrets.token_hex(4)}"
        super().__init__(settings, worker_id=self.id, handlers=handlers, clock=clock or SystemClock())

    def places(self) -> set[tuple[str, int]]:
        """Each handler and slot that it holds, proven or not."""
        return {
            (handler, slot)
            for part in self.holding().slices
            for handler in part.handlers
            for arc in part.arcs
            for slot in range(arc.lo, arc.hi + 1)
        }


class Fleet:
    """Light workers that are checked against each other. Leaves nothing behind."""

    def __init__(self, hosts: str, *, session_seconds: float = SESSION_SECONDS) -> None:
        self.hosts = hosts
        self.workers: list[Light] = []
        self._session_seconds = session_seconds
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def join(self, name: str, *, handlers: tuple[str, ...] = HANDLERS, capacity: int = 10) -> Light:
        worker = Light(self.hosts, name, handlers=handlers, capacity=capacity, session_seconds=self._session_seconds)
        await worker.start()
        self._stack.push_async_callback(worker.leave)
        self.workers.append(worker)
        return worker

    async def join_all(self, names: Iterable[str]) -> None:
        for name in names:
            await self.join(name)

    async def leave(self, worker: Light) -> None:
        self.workers.remove(worker)
        await worker.leave()

    def check_disjoint(self) -> None:
        """No two of them hold one slot of one handler with proof."""
        seen: dict[tuple[str, int], Light] = {}
        for worker in self.workers:
            if worker.holding().proven:
                for place in worker.places():
                    assert place not in seen, f"{place} is held by {seen[place].id} and by {worker.id}"
                    seen[place] = worker

    def is_complete(self, handlers: tuple[str, ...] = HANDLERS) -> bool:
        """Whether all are proven at one epoch and hold the whole ring of the handlers between them."""
        self.check_disjoint()
        holdings = [worker.holding() for worker in self.workers]
        held = sum(len(worker.places()) for worker in self.workers)
        return (
            all(holding.proven for holding in holdings)
            and len({holding.epoch for holding in holdings}) == 1
            and held == len(handlers) * SLOT_COUNT
        )

    @property
    def epoch(self) -> int:
        return max(worker.holding().epoch for worker in self.workers)
