"""Takes back lapsed leases: every worker, every slot, also at capacity 0.

Invariant: a reaper reaps only after it has watched the same store undisturbed for one lease length. A lost connection,
another backend, a step of the database's clock or a gap in its own looking resets the watch: after a stall, a step or a
failover the owners get one lease to renew or hand back, so that an outage convicts nobody. The guard against a step
stands inside the statement as well, and the statement runs over the backend that was watched or not at all.
"""

from __future__ import annotations

import asyncio
import random

import structlog

from ringcron import metrics
from ringcron.clock import Clock, DatabaseClock
from ringcron.errors import StatementRefused, StoreUnavailable
from ringcron.models import RunOutcome
from ringcron.store.bounds import Bounds, behind
from ringcron.store.worker import WorkerStore

_log = structlog.get_logger(__name__)


class Watch:
    """Since when the same store has been watched without a disturbance (elapsed seconds)."""

    def __init__(self, clock: Clock, database_clock: DatabaseClock, *, lease_seconds: float) -> None:
        self._clock = clock
        self._database_clock = database_clock
        self._lease_seconds = lease_seconds
        self._since = clock.elapsed()
        self._looked_at = self._since
        self.backend = 0
        """Over which backend it was last looked."""

    def look(self, backend: int) -> None:
        """The store answered just now, over backend number `backend`."""
        now = self._clock.elapsed()
        gap = now - self._looked_at > self._lease_seconds * 2 / 3
        if gap or backend != self.backend:
            self._since = now
        self.backend = backend
        self._looked_at = now

    @property
    def trusted(self) -> bool:
        """Whether a lease that looks lapsed may be taken back."""
        since = max(self._since, self._database_clock.stepped_at or self._since)
        now = self._clock.elapsed()
        return now - since >= self._lease_seconds and now - self._looked_at <= self._lease_seconds * 2 / 3


class Reaper:
    """The reaping of one worker: on a timer, and when a peek sees a lapsed lease."""

    def __init__(
        self, store: WorkerStore, clock: Clock, database_clock: DatabaseClock, *, lease_seconds: float
    ) -> None:
        self._store = store
        self._database_clock = database_clock
        self._lease_seconds = lease_seconds
        self._watch = Watch(clock, database_clock, lease_seconds=lease_seconds)
        self._clock = clock
        self._none_lapsed_at = -lease_seconds

    def saw_none_lapsed(self) -> None:
        """A peek that looked at all found no lease that has lapsed."""
        self._none_lapsed_at = self._clock.elapsed()

    def look(self) -> None:
        """Whoever got an answer from the store says so here."""
        self._watch.look(self._store.main.generation)

    @property
    def trusted(self) -> bool:
        """Whether a lease that looks lapsed may be taken back."""
        return self._watch.trusted

    async def run_forever(self) -> None:
        while True:
            seconds = self._lease_seconds / 3 * random.uniform(0.75, 1.25)
            await asyncio.sleep(seconds)
            if self._clock.elapsed() - self._none_lapsed_at < seconds:
                continue  # and that look at the store counted for the watch
            try:
                if self.trusted:
                    await self.reap(behind(self._database_clock.now()))
                else:
                    await self._store.look()
                self.look()
            except (StoreUnavailable, StatementRefused) as error:
                _log.warning("leases could not be looked at", error=str(error))

    async def reap(self, bounds: Bounds) -> int:
        """Take back lapsed leases if the watch allows it; returns how many."""
        if not self.trusted:
            return 0
        reaped = await self._store.reap_leases(
            bounds, expected_now=self._database_clock.now(), backend=self._watch.backend
        )
        for lease in reaped:
            metrics.LEASES_LAPSED.inc()
            metrics.RUNS[RunOutcome.LOST].inc()
            if lease.convicted:
                metrics.DEAD.inc()
            _log.warning(
                "lease lapsed: the job is dead now" if lease.convicted else "lease lapsed: the job is due again",
                job=str(lease.job_id),
                generation=lease.lease_generation,
                owner=lease.lease_owner,
            )
        return len(reaped)
