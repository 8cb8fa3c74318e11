"""The ring as people see it: who owns which slots, how late each slice is, and what nobody owns.

Invariant: it comes from what workers report and from the lag of the moment, never from ZooKeeper or a coordinator. A
worker that has gone silent owns nothing. For people; nothing decides by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringcron.instants import format_instant
from ringcron.models import Arc, WorkerReport
from ringcron.slots import SLOT_COUNT
from ringcron.store.lag import Lag
from ringcron_api.pool_reader import PoolReader, Reading


@dataclass(frozen=True, slots=True)
class SlotLate:
    """How long the oldest due job of a slot has waited, and how many wait."""

    lag_seconds: float
    due: int

    def beside(self, other: SlotLate | None) -> SlotLate:
        """Both together."""
        if other is None:
            return self
        return SlotLate(max(self.lag_seconds, other.lag_seconds), self.due + other.due)


@dataclass(kw_only=True, slots=True)
class Held:
    """The slice of one worker, and what is late in it."""

    worker: WorkerReport
    slots: set[int] = field(default_factory=set)
    late: dict[int, SlotLate] = field(default_factory=dict)

    @property
    def lag_seconds(self) -> float:
        return max((late.lag_seconds for late in self.late.values()), default=0.0)

    @property
    def due(self) -> int:
        return sum(late.due for late in self.late.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class RingView:
    """The whole ring at one moment.

    `late`: by slot, of all handlers. `unowned`: slots that, for some handler, no worker owns; all of them where
    there is no worker. `unowned_late`: by slot, the late jobs that no worker answers for.
    """

    held: tuple[Held, ...]
    late: Mapping[int, SlotLate]
    unowned: frozenset[int]
    unowned_late: Mapping[int, SlotLate]
    epoch: int


class ShardReader:
    """The answer to GET /shards, made once of each reading."""

    def __init__(self, pool: PoolReader) -> None:
        self._pool = pool
        self._of: Reading | None = None
        self._answer: dict[str, Any] = {}

    async def answer(self) -> dict[str, Any]:
        """Raises StoreUnavailable."""
        reading = await self._pool.reading()
        if self._of is not reading:
            self._answer = shards_answer(reading.workers, reading.snapshot.lag)
            self._of = reading
        return self._answer


def shards_answer(workers: Sequence[WorkerReport], lag: Lag) -> dict[str, Any]:
    """The ring at `lag.taken_at`. Lag counts for every worker whose slice has the job's handler and slot."""
    ring = ring_of(workers, lag)
    return {
        "items": [
            {
                "worker": held.worker.worker_id,
                "arcs": [[arc.lo, arc.hi] for arc in arcs_of(held.slots)],
                "lagSeconds": round(held.lag_seconds, 6),
                "due": held.due,
                "running": held.worker.running,
            }
            for held in ring.held
        ],
        "slots": [
            {"slot": slot, "lagSeconds": round(late.lag_seconds, 6), "due": late.due}
            for slot, late in sorted(ring.late.items())
        ],
        "unowned": [[arc.lo, arc.hi] for arc in arcs_of(ring.unowned)],
        "epoch": ring.epoch,
        "takenAt": format_instant(lag.taken_at),
    }


def ring_of(workers: Sequence[WorkerReport], lag: Lag) -> RingView:
    """Who owns what and what is late in it. A worker that is silent is left out."""
    alive = [worker for worker in workers if not worker.silent]
    all_held = {worker.worker_id: Held(worker=worker) for worker in alive}
    owners = _owners(alive, all_held)
    late: dict[int, SlotLate] = {}
    unowned_late: dict[int, SlotLate] = {}
    for row in lag.slots:
        this = SlotLate(row.lag_seconds, row.due)
        late[row.slot] = this.beside(late.get(row.slot))
        owning = owners[row.handler][row.slot] if row.handler in owners else ()
        for held in owning:
            held.late[row.slot] = this.beside(held.late.get(row.slot))
        if not owning:
            unowned_late[row.slot] = this.beside(unowned_late.get(row.slot))
    return RingView(
        held=tuple(all_held.values()),
        late=late,
        unowned=_unowned(owners),
        unowned_late=unowned_late,
        epoch=max((worker.epoch for worker in alive), default=0),
    )


_Table = list[list[Held]]
"""Owners by slot."""


def _owners(workers: Sequence[WorkerReport], all_held: dict[str, Held]) -> dict[str, _Table]:
    """Owners by handler and slot. Handlers whose slices are the same share one table."""
    arcs_by_handler: dict[str, list[tuple[str, int, int]]] = {}
    for worker in workers:
        for handler in worker.handlers:
            arcs_by_handler.setdefault(handler, [])
        for held in worker.slices:
            for arc in held.arcs:
                all_held[worker.worker_id].slots.update(_span(arc.lo, arc.hi))
                for handler in held.handlers:
                    arcs_by_handler.setdefault(handler, []).append((worker.worker_id, arc.lo, arc.hi))
    tables: dict[tuple[tuple[str, int, int], ...], _Table] = {}
    for arcs in {tuple(arcs) for arcs in arcs_by_handler.values()}:
        table: _Table = [[] for _ in range(SLOT_COUNT)]
        for worker_id, lo, hi in arcs:
            for slot in _span(lo, hi):
                table[slot].append(all_held[worker_id])
        tables[arcs] = table
    return {handler: tables[tuple(arcs)] for handler, arcs in arcs_by_handler.items()}


def _span(lo: int, hi: int) -> range:
    """The slots of an arc that are on the ring: a report is only what a worker said."""
    return range(max(lo, 0), min(hi, SLOT_COUNT - 1) + 1)


def _unowned(owners: dict[str, _Table]) -> frozenset[int]:
    """The slots that, for some handler, no worker owns; all of them where there is no worker."""
    if not owners:
        return frozenset(range(SLOT_COUNT))
    tables = {id(table): table for table in owners.values()}.values()
    return frozenset(slot for table in tables for slot in range(SLOT_COUNT) if not table[slot])


def arcs_of(slots: Iterable[int]) -> list[Arc]:
    """Slots as arcs, in order."""
    arcs: list[list[int]] = []
    for slot in sorted(slots):
        if arcs and arcs[-1][1] == slot - 1:
            arcs[-1][1] = slot
        else:
            arcs.append([slot, slot])
    return [Arc(lo=lo, hi=hi) for lo, hi in arcs]
