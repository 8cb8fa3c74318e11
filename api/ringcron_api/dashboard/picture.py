"""Everything that the pages and the stream show of the pool, read once a second for all of them.

Invariant: one picture a second for one API process, whatever the number of pages and streams. The forecast and the
audit are read aside and less often, and no picture fails because of them. Nothing is read while nobody looks.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ringcron.clock import Clock
from ringcron.models import WorkerReport
from ringcron.store.api import ApiStore
from ringcron.store.looking import Epoch, GoneWorker
from ringcron.store.snapshot import Snapshot
from ringcron_api.dashboard.alarms import Alarms, Overlooked, alarms_of
from ringcron_api.dashboard.aside import Aside
from ringcron_api.dashboard.spike import Spike, spike_of
from ringcron_api.dashboard.verdict import Verdict, verdict_of
from ringcron_api.forecasts import Forecaster
from ringcron_api.pool_reader import PoolReader, Reading
from ringcron_api.shards import RingView, ring_of

AHEAD_SECONDS: Final = 5.0
AUDIT_SECONDS: Final = 10.0
HORIZON_SECONDS: Final = 3600
EPOCHS_READ: Final = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """The pool at `now`, the database's clock. `spike` None: what comes is not known."""

    now: datetime
    workers: tuple[WorkerReport, ...]
    gone: tuple[GoneWorker, ...]
    epochs: tuple[Epoch, ...]
    snapshot: Snapshot
    ring: RingView
    spike: Spike | None
    alarms: Alarms
    verdict: Verdict
    read_at: float

    @property
    def alive(self) -> tuple[WorkerReport, ...]:
        return tuple(worker for worker in self.workers if not worker.silent)

    @property
    def known(self) -> int:
        """Workers that live, and names under which one lately lived and none does."""
        names = {worker.name for worker in self.workers} | {gone.name for gone in self.gone}
        return len(self.alive) + len(names - {worker.name for worker in self.alive})

    @property
    def capacity(self) -> int:
        """Places of the workers that claim."""
        return sum(worker.capacity for worker in self.alive if not worker.draining)


class Painter:
    """The pictures of one API process."""

    def __init__(
        self, store: ApiStore, pool: PoolReader, forecaster: Forecaster, clock: Clock, *, overdue_seconds: float
    ) -> None:
        """`overdue_seconds`: when the coordinators' auditor calls a job overlooked."""
        self._store = store
        self._pool = pool
        self._forecaster = forecaster
        self._overdue_seconds = overdue_seconds
        self._latest: Picture | None = None
        self._of: Reading | None = None
        self._painting: asyncio.Task[Picture] | None = None
        self._spike = Aside(self._foresee, clock, every_seconds=AHEAD_SECONDS, what="forecast")
        self._overlooked = Aside(self._audit, clock, every_seconds=AUDIT_SECONDS, what="audit")

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
        alarms = alarms_of(await self._store.breaches())
        spike, overlooked = await asyncio.gather(self._spike.latest(), self._overlooked.latest())
        snapshot = reading.snapshot
        ring = ring_of(reading.workers, snapshot.lag)
        verdict = verdict_of(
            workers=reading.workers,
            gone=gone,
            epochs=epochs,
            snapshot=snapshot,
            ring=ring,
            spike=spike,
            alarms=alarms,
            overlooked=overlooked or (),
            now=now,
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
                spike=spike,
                alarms=alarms,
                verdict=verdict,
                read_at=reading.read_at,
            ),
        )
        return self._latest

    async def close(self) -> None:
        """Read no more aside."""
        await self._spike.close()
        await self._overlooked.close()

    async def _foresee(self) -> Spike:
        reading = await self._pool.reading()
        outlook = await self._forecaster.outlook(HORIZON_SECONDS)
        return spike_of(outlook, measured=any(worker.mean_seconds for worker in reading.workers))

    async def _audit(self) -> tuple[Overlooked, ...]:
        found = await self._store.forgotten(self._overdue_seconds)
        now = await self._store.now()
        return tuple(
            Overlooked(
                handler=one.handler,
                jobs=one.jobs,
                since=now - timedelta(seconds=one.oldest_seconds),
                oldest_id=one.oldest_id,
            )
            for one in found
        )
