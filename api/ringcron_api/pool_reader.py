"""The pool as this process last read it: who reports, and the lag of the moment.

Invariant: read when it is asked for and the lag that it has was counted a second ago; callers meanwhile share one
reading, however many they are.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ringcron.clock import Clock
from ringcron.models import WorkerReport
from ringcron.store.api import ApiStore
from ringcron.store.snapshot import FRESH_SECONDS, Snapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What one look found. `read_at`: on the clock that counts elapsed seconds."""

    workers: tuple[WorkerReport, ...]
    snapshot: Snapshot
    read_at: float


class PoolReader:
    """The readings of one API process."""

    def __init__(self, store: ApiStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._latest: Reading | None = None
        self._reading: asyncio.Task[Reading] | None = None

    async def reading(self) -> Reading:
        """The latest, a second old at most. Raises StoreUnavailable."""
        if self._latest is not None and self.age_of(self._latest) < FRESH_SECONDS:
            return self._latest
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        # Shielded: a caller that goes away must not take the reading from the others.
        return await asyncio.shield(self._reading)

    def age_of(self, reading: Reading) -> float:
        """How many seconds ago the lag in it was counted."""
        return reading.snapshot.age_seconds + self._clock.elapsed() - reading.read_at

    async def _read(self) -> Reading:
        workers = await self._store.list_workers()
        handlers = sorted({handler for worker in workers if not worker.silent for handler in worker.handlers})
        snapshot = await self._store.snapshot(handlers)
        self._latest = Reading(workers=tuple(workers), snapshot=snapshot, read_at=self._clock.elapsed())
        return self._latest
