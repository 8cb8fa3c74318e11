"""The assignments that this leader published, noted in PostgreSQL for people.

Invariant: ZooKeeper is authoritative; this is a record beside it. Nothing waits for it: what cannot be written yet is
kept, the newest PENDING of it, and written when the database answers.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ringcron.assignment import Assignment
from ringcron.members import Incarnation
from ringcron.store.api import ApiStore
from ringcron.store.looking import EpochNote, Transit

PENDING: Final = 100
TRANSITS: Final = 500
"""Arcs in handover that are noted of one assignment at most."""


class EpochLog:
    """Those of one term."""

    def __init__(self, store: ApiStore) -> None:
        self._store = store
        self._pending: deque[EpochNote] = deque(maxlen=PENDING)

    def note(self, before: Assignment | None, published: Assignment) -> None:
        """Remember what was published over `before`."""
        self._pending.append(note_of(before, published))

    async def write(self) -> None:
        """Write down what is remembered. Raises StoreUnavailable."""
        while self._pending:
            note = self._pending[0]
            await self._store.note_epoch(note)
            if self._pending and self._pending[0] is note:
                self._pending.popleft()


def note_of(before: Assignment | None, published: Assignment) -> EpochNote:
    """What people want to know of a version: why it came, what it moved, what is on its way, what nobody owns."""
    transits = [
        Transit(arc=arc, giver=_id(cell.owner), taker=_id(cell.to))
        for ring in published.rings
        for arc, cell in ring.arcs
        if cell.since
    ]
    return EpochNote(
        epoch=published.epoch,
        cause=published.cause,
        leader=published.leader,
        members=len(published.members),
        slots_moved=_moved(before, published),
        slots_unowned=sum(len(arc) for arc in published.unowned()),
        in_transit=tuple(transits[:TRANSITS]),
    )


def _moved(before: Assignment | None, published: Assignment) -> int:
    """Slots of all rings whose owner, or the worker that they are on their way to, is another than before."""
    old = {} if before is None else {handler: ring for ring in before.rings for handler in ring.handlers}
    moved = 0
    for ring in published.rings:
        previous = old.get(ring.handlers[0])
        was: list[Incarnation | None] = [None] * published.ring_size
        if previous is not None:
            was = [cell.to or cell.owner for arc, cell in previous.arcs for _ in range(len(arc))]
        moved += sum(
            was[slot] != (cell.to or cell.owner) for arc, cell in ring.arcs for slot in range(arc.lo, arc.hi + 1)
        )
    return moved


def _id(incarnation: Incarnation | None) -> str | None:
    return None if incarnation is None else incarnation.id
