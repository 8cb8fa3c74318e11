"""Everything that the pages and the stream show of the pool, read once a second for all of them.

Invariant: one picture a second for one API process, whatever the number of pages and streams; the part that looks an
hour ahead is read every AHEAD_SECONDS. Nothing is read while nobody looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ringcron.clock import Clock
from ringcron.models import WorkerReport
from ringcron.store.api import ApiStore
from ringcron.store.looking import Epoch, GoneWorker
from ringcron.store.snapshot import Snapshot
from ringcron_api.dashboard.spike import Outlook, outlook_of
from ringcron_api.dashboard.verdict import Verdict, verdict_of
from ringcron_api.pool_reader import PoolReader, Reading
from ringcron_api.shards import RingView, ring_of

AHEAD_SECONDS: Final = 5.0
HORIZON_SECONDS: Final = 3600
EPOCHS_READ: Final = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """The pool at `now`, the database's clock. `ahead`: jobs by the second, counted from `ahead_at`, that they become
    due in."""

    now: datetime
    workers: tuple[WorkerReport, ...]
    gone: tuple[GoneWorker, ...]
    epochs: tuple[Epoch, ...]
    snapshot: Snapshot
    ring: RingView
    ahead: Mapping[int, int]
    ahead_at: datetime
    outlook: Outlook
    verdict: Verdict
    read_at: float

    @property
    def alive(self) -> tuple[WorkerReport, ...]:
        return tuple(worker for worker in self.workers if not worker.silent)

    @property
    def capacity(self) -> int:
        """Places of the workers that claim."""
        return sum(worker.capacity for worker in self.alive if not worker.draining)


class Painter:
    """The pictures of one API process."""

    def __init__(self, store: ApiStore, pool: PoolReader, clock: Clock) -> None:
        self._store = store
        self._pool = pool
        self._clock = clock
        self._latest: Picture | None = None
        self._of: Reading | None = None
        self._painting: asyncio.Task[Picture] | None = None
        self._ahead: tuple[Mapping[int, int], datetime, float] | None = None

    async def picture(self) -> Picture:
        """The latest, a second old at most. Raises StoreUnavailable."""
        reading = await self._pool.reading()
        if self._latest is not None and reading is self._of:
            return self._latest
        if self._painting is None or self._painting.done():
            self._painting = asyncio.create_task(self._paint(reading))
        return await asyncio.shield(self._painting)

    async def _paint(self, reading: Reading) -> Picture:
        gone = await self._store.gone_workers()
        epochs = await self._store.epochs(EPOCHS_READ)
        now = await self._store.now()
        ahead, ahead_at = await self._look_ahead(reading, now)
        snapshot = reading.snapshot
        ring = ring_of(reading.workers, snapshot.lag)
        alive = [worker for worker in reading.workers if not worker.silent and not worker.draining]
        outlook = outlook_of(ahead, snapshot, capacities=[worker.capacity for worker in alive])
        verdict = verdict_of(
            now=now, workers=reading.workers, gone=gone, epochs=epochs, snapshot=snapshot, ring=ring, outlook=outlook
        )
        self._of, self._latest = (
            reading,
            Picture(
                now=now,
                workers=reading.workers,
                gone=tuple(gone),
                epochs=tuple(epochs),
                snapshot=snapshot,
                ring=ring,
                ahead=ahead,
                ahead_at=ahead_at,
                outlook=outlook,
                verdict=verdict,
                read_at=reading.read_at,
            ),
        )
        return self._latest

    async def _look_ahead(self, reading: Reading, now: datetime) -> tuple[Mapping[int, int], datetime]:
        if self._ahead is None or self._clock.elapsed() - self._ahead[2] >= AHEAD_SECONDS:
            handlers = {handler for worker in reading.workers if not worker.silent for handler in worker.handlers}
            found = await self._store.due_by_second(sorted(handlers), ahead_seconds=HORIZON_SECONDS)
            self._ahead = (found, now, self._clock.elapsed())
        ahead, at, _ = self._ahead
        return ahead, at
