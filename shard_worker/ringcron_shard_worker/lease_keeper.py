"""Renews every lease that is held, and tells each run until when its lease may be believed in.

    claim or renewal sent                     now + L − margin: trust ends          now + L: the lease may lapse
      │── L/3 ──▶ renew ── L/3 ──▶ renew …      │                                     │
      │                        grace before ──▶ handlers are asked to stop           reap (anybody)

Trust ends at the *sending* of the last successful claim or renewal + L − margin, on a clock that counts suspended time:
whatever the answer took, PostgreSQL's lease ends later than that. The execution asks handlers to stop one grace before,
and sees to it that nothing runs when trust has ended.
PostgreSQL is authoritative: a lease that is refused is lost, whatever this process believes.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from ringcron import metrics
from ringcron.clock import Clock
from ringcron.errors import StatementRefused, StoreUnavailable
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.execution import StopReason
from ringcron_shard_worker.leases import Held, Leases

RENEWALS_PER_LEASE: Final = 3
MARGIN_SHARE: Final = 0.1
"""Share of the lease by which trust ends early: what killing may take."""
GRACE_SHARE: Final = 0.1
"""Share of the lease that handlers get to stop by themselves, before trust ends."""

_log = structlog.get_logger(__name__)


def trust_of(sent_at: float, lease_seconds: float) -> float:
    """Until when (elapsed) a lease may be believed in that was claimed or renewed by a statement sent at `sent_at`."""
    return sent_at + lease_seconds * (1 - MARGIN_SHARE)


class LeaseKeeper:
    """The renewing loop of one worker."""

    def __init__(self, store: WorkerStore, leases: Leases, clock: Clock, *, lease_seconds: float) -> None:
        self._store = store
        self._leases = leases
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._proved_at = -lease_seconds

    async def run_forever(self) -> None:
        period = self._lease_seconds / RENEWALS_PER_LEASE
        while True:
            sent_at = self._clock.elapsed()
            renewed = await self._renew(sent_at)
            # A failed renewal is tried again at once: the connection's own limit already took its share of the time.
            due = sent_at + period if renewed else self._clock.elapsed() + min(0.2, period / 10)
            await asyncio.sleep(max(0.0, due - self._clock.elapsed()))

    async def _renew(self, sent_at: float) -> bool:
        asked = self._leases.all()
        try:
            if not asked:
                await self._keep_listening(sent_at)
                return True
            answer = await self._store.renew_leases([held.claim for held in asked])
        except (StoreUnavailable, StatementRefused) as error:
            metrics.RENEW_FAILURES.inc()
            _log.warning("leases could not be renewed", count=len(asked), error=str(error))
            return False
        for held in asked:
            token = (held.claim.id, held.claim.lease_generation)
            if token not in answer.held:
                self._lost(held)
                continue
            held.control.extend(trust_of(sent_at, self._lease_seconds))
            if answer.held[token]:
                held.control.stop(StopReason.CANCEL_REQUESTED)
        return True

    async def _keep_listening(self, now: float) -> None:
        """Once a lease is enough for a connection that only hears the bell; the end of its socket shows by itself."""
        if not self._store.renewals.up or now - self._proved_at >= self._lease_seconds:
            await self._store.keep_listening()
            self._proved_at = now

    def _lost(self, held: Held) -> None:
        """The fence refused this renewal. A run that has ended meanwhile was completed, not lost."""
        if self._leases.get(held.claim.id, held.claim.lease_generation) is not held or not held.running:
            return
        metrics.STALE_WRITES["renew"].inc()
        _log.warning(
            "renewal refused: the lease is gone",
            job=str(held.claim.id),
            held_generation=held.claim.lease_generation,
        )
        held.control.stop(StopReason.LEASE_LOST)
