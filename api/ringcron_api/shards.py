"""The ring as people see it: who owns which slots, how late each slice is, and what nobody owns.

Invariant: read from what workers report and from the jobs table, at most once a second whatever the number of callers,
and never from ZooKeeper or a coordinator. For people; nothing decides by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ringcron.clock import Clock
from ringcron.instants import format_instant
from ringcron.models import WorkerReport
from ringcron.slots import SLOT_COUNT
from ringcron.store.api import ApiStore
from ringcron.store.lag import Lag

CACHED_SECONDS: Final = 1.0


class ShardReader:
    """Reads the ring when it is asked for and what it has is a second old; callers meanwhile share one reading."""

    def __init__(self, store: ApiStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._answer: dict[str, Any] | None = None
        self._answered_at = 0.0
        self._reading: asyncio.Task[dict[str, Any]] | None = None

    async def answer(self) -> dict[str, Any]:
        """The answer to GET /shards. Raises StoreUnavailable."""
        if self._answer is not None and self._clock.elapsed() - self._answered_at < CACHED_SECONDS:
            return self._answer
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        # Shielded: a caller that goes away must not take the reading from the others.
        return await asyncio.shield(self._reading)

    async def _read(self) -> dict[str, Any]:
        workers = await self._store.list_workers()
        runnable = sorted({handler for worker in workers for handler in worker.handlers})
        # With no worker at all nothing is runnable; then everything that waits is what people must see.
        lag = await self._store.lag(runnable or None)
        self._answer = shards_answer(workers, lag)
        self._answered_at = self._clock.elapsed()
        return self._answer


@dataclass
class _Slice:
    """What one worker answers for."""

    slots: set[int] = field(default_factory=set)
    lag_seconds: float = 0.0
    due: int = 0


def shards_answer(workers: Sequence[WorkerReport], lag: Lag) -> dict[str, Any]:
    """The ring at `lag.taken_at`. Lag counts for every worker whose slice has the job's handler and slot."""
    slices = {worker.worker_id: _Slice() for worker in workers}
    owners = _owners(workers, slices)
    slots: dict[int, tuple[float, int]] = {}
    for late in lag.slots:
        oldest, due = slots.get(late.slot, (0.0, 0))
        slots[late.slot] = (max(oldest, late.lag_seconds), due + late.due)
        for owner in owners[late.handler][late.slot] if late.handler in owners else ():
            owner.lag_seconds = max(owner.lag_seconds, late.lag_seconds)
            owner.due += late.due
    return {
        "items": [
            {
                "worker": worker.worker_id,
                "arcs": arcs_of(slices[worker.worker_id].slots),
                "lagSeconds": round(slices[worker.worker_id].lag_seconds, 6),
                "due": slices[worker.worker_id].due,
                "running": worker.running,
            }
            for worker in workers
        ],
        "slots": [
            {"slot": slot, "lagSeconds": round(lag_seconds, 6), "due": due}
            for slot, (lag_seconds, due) in sorted(slots.items())
        ],
        "unowned": arcs_of(_unowned(owners)),
        "epoch": max((worker.epoch for worker in workers), default=0),
        "takenAt": format_instant(lag.taken_at),
    }


_Table = list[list[_Slice]]
"""Owners by slot."""


def _owners(workers: Sequence[WorkerReport], slices: dict[str, _Slice]) -> dict[str, _Table]:
    """Owners by handler and slot. Handlers whose slices are the same share one table."""
    held_by_handler: dict[str, list[tuple[str, int, int]]] = {}
    for worker in workers:
        for handler in worker.handlers:
            held_by_handler.setdefault(handler, [])
        for held in worker.slices:
            for arc in held.arcs:
                slices[worker.worker_id].slots.update(_span(arc.lo, arc.hi))
                for handler in held.handlers:
                    held_by_handler.setdefault(handler, []).append((worker.worker_id, arc.lo, arc.hi))
    tables: dict[tuple[tuple[str, int, int], ...], _Table] = {}
    for arcs in {tuple(held) for held in held_by_handler.values()}:
        table: _Table = [[] for _ in range(SLOT_COUNT)]
        for worker_id, lo, hi in arcs:
            for slot in _span(lo, hi):
                table[slot].append(slices[worker_id])
        tables[arcs] = table
    return {handler: tables[tuple(held)] for handler, held in held_by_handler.items()}


def _span(lo: int, hi: int) -> range:
    """The slots of an arc that are on the ring: a report is only what a worker said."""
    return range(max(lo, 0), min(hi, SLOT_COUNT - 1) + 1)


def _unowned(owners: dict[str, _Table]) -> set[int]:
    """The slots that, for some handler, no worker owns; all of them where there is no worker."""
    if not owners:
        return set(range(SLOT_COUNT))
    tables = {id(table): table for table in owners.values()}.values()
    return {slot for table in tables for slot in range(SLOT_COUNT) if not table[slot]}


def arcs_of(slots: Iterable[int]) -> list[list[int]]:
    """Slots as arcs [first, last], in order."""
    arcs: list[list[int]] = []
    for slot in sorted(slots):
        if arcs and arcs[-1][1] == slot - 1:
            arcs[-1][1] = slot
        else:
            arcs.append([slot, slot])
    return arcs
