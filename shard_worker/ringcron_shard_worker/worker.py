"""One worker: wires the loops, owns capacity, and drains.

    slice holder ─▶ claimer ─▶ runner ─▶ execution ─▶ completer ─▶ PostgreSQL
                       ▲          │                       │
                    reaper     leases ◀── lease keeper ───┘

Invariant: draining, a worker first stops claiming, then leaves membership (its slices move at once), then finishes what
runs or hands it back, and only then stops renewing. Each loop that fails by a fault of ours ends the process: a worker
that does half its work is worse than one whose jobs move elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Final

import structlog

import ringcron
from ringcron import metrics
from ringcron.bell import decode_bell
from ringcron.clock import Clock, DatabaseClock
from ringcron.errors import StatementRefused, StoreUnavailable
from ringcron.models import WorkerReport
from ringcron.schedule import tzdata_version
from ringcron.settings import WorkerSettings
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.claimer import Claimer
from ringcron_shard_worker.execution import Execution, StopReason
from ringcron_shard_worker.execution.going import leave
from ringcron_shard_worker.lease_keeper import GRACE_SHARE, LeaseKeeper
from ringcron_shard_worker.leases import Leases
from ringcron_shard_worker.reaper import Reaper
from ringcron_shard_worker.runner import Runner
from ringcron_shard_worker.slice_holder import SliceHolder
from ringcron_shard_worker.traces import Traces

REPORTS_PER_LEASE: Final = 3
CHANGES_GATHER_SECONDS: Final = 0.25
"""How long after a change of what is held it is reported: a handover is several of them."""

_log = structlog.get_logger(__name__)


class Worker:
    """One worker incarnation, from start to drained."""

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        worker_id: str,
        handlers: tuple[str, ...],
        holder: SliceHolder,
        execution: Execution,
        clock: Clock,
        traces: Traces | None = None,
    ) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._handlers = handlers
        self._holder = holder
        self._execution = execution
        self._draining = False
        self._asked_to_drain = asyncio.Event()
        self._clock = clock
        database_clock = self._database_clock = DatabaseClock(clock)
        lease_seconds = settings.lease_seconds
        self._store = WorkerStore(
            settings.database_url,
            worker_id=worker_id,
            clock=clock,
            database_clock=database_clock,
            lease_seconds=lease_seconds,
            statement_seconds=max(1.0, lease_seconds / 3),
            on_bell=self._on_bell if settings.bell == "listen" else None,
            behind_pooler=settings.behind_pooler,
        )
        self._leases = Leases(settings.concurrency, clock, lease_seconds=lease_seconds)
        self._runner = Runner(self._store, self._leases, execution, clock, database_clock, holder.changed.set, traces)
        self._keeper = LeaseKeeper(self._store, self._leases, clock, lease_seconds=lease_seconds)
        self._reaper = Reaper(self._store, clock, database_clock, lease_seconds=lease_seconds)
        self._claimer = Claimer(
            self._store,
            holder,
            self._leases,
            self._runner,
            self._reaper,
            clock,
            database_clock,
            handlers=handlers,
            lease_seconds=lease_seconds,
            poll_seconds=settings.poll_seconds,
            help_after_seconds=settings.help_after_seconds,
            batch_size=settings.batch_size,
        )

    async def run(self, drain: asyncio.Event) -> None:
        """Work until `drain` is set or a person asks for it, then drain. Raises what ended a loop by our own fault."""
        metrics.WORKER_CAPACITY.set(self._settings.concurrency)
        metrics.WORKER_RUNNING.set_function(lambda: float(self._leases.running))
        await self._execution.start()
        await self._holder.start()
        loops = {
            "claimer": asyncio.create_task(self._claimer.run_forever()),
            "keeper": asyncio.create_task(self._keeper.run_forever()),
            "completer": asyncio.create_task(self._runner.completer.run_forever()),
            "reaper": asyncio.create_task(self._reaper.run_forever()),
            "reporter": asyncio.create_task(self._report_forever()),
        }
        _log.info(
            "worker started", worker=self._worker_id, capacity=self._settings.concurrency, handlers=self._handlers
        )
        asked = [asyncio.create_task(event.wait()) for event in (drain, self._asked_to_drain)]
        try:
            await asyncio.wait({*asked, *loops.values()}, return_when=asyncio.FIRST_COMPLETED)
            for loop in loops.values():
                if loop.done():
                    loop.result()
            await self._drain(loops)
        finally:
            for task in (*asked, *loops.values()):
                task.cancel()
            await asyncio.gather(*asked, *loops.values(), return_exceptions=True)
            await self._stop_what_runs()
            await self._execution.close()
            await self._store.close()

    def _on_bell(self, message: str) -> None:
        bell = decode_bell(message)
        for job_id, generation in bell.cancels:
            held = self._leases.get(job_id, generation)
            if held is not None:
                held.control.stop(StopReason.CANCEL_REQUESTED)
        if bell.concerns(self._holder.holding()):
            self._holder.changed.set()

    async def _drain(self, loops: dict[str, asyncio.Task[None]]) -> None:
        self._draining = True
        _log.info("draining", running=self._leases.running)
        async with self._claimer.claiming:  # wait for the claim in flight: cancelled, its answer would be missed
            loops["claimer"].cancel()
        await asyncio.gather(loops["claimer"], return_exceptions=True)
        await self._holder.leave()
        await self._briefly(self._store.release_unknown_claims(self._leases.claims()))
        await self._report()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_seconds):
                await self._runner.ended()
        for held in self._leases.all():
            held.control.stop(StopReason.DRAINED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.lease_seconds):
                await self._runner.ended()
                await self._runner.completer.flushed()
        if not self._leases.empty:
            _log.error("left with leases held: they lapse", count=len(self._leases.all()))
        await self._briefly(self._store.forget_worker())
        _log.info("drained")

    async def _stop_what_runs(self) -> None:
        """The way out: nothing may run on when nobody renews its lease. What does not stop takes the process along,
        while the guard still stands."""
        for held in self._leases.all():
            held.control.stop(StopReason.DRAINED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.lease_seconds * GRACE_SHARE):
                await self._runner.ended()
        if self._leases.running:
            _log.critical("the worker exits: handlers do not stop", running=self._leases.running)
            leave()

    async def _briefly(self, work: Awaitable[object]) -> None:
        """Something worth doing on the way out, but not worth waiting for a database that is away."""
        try:
            await work
        except (StoreUnavailable, StatementRefused) as error:
            _log.warning("the database does not answer while draining", error=str(error))

    async def _report_forever(self) -> None:
        """Report every third of a lease, and soon after each change of what is held."""
        period = self._settings.lease_seconds / REPORTS_PER_LEASE
        while True:
            self._holder.reshaped.clear()
            await self._report()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(period):
                    await self._holder.reshaped.wait()
                    await asyncio.sleep(CHANGES_GATHER_SECONDS)

    async def _report(self) -> None:
        holding = self._holder.holding()
        report = WorkerReport(
            worker_id=self._worker_id,
            name=self._settings.name,
            capacity=self._settings.concurrency,
            running=self._leases.running,
            handlers=self._handlers,
            version=ringcron.__version__,
            tzdata=tzdata_version(),
            epoch=holding.epoch,
            draining=self._draining,
            slices=holding.slices,
            report_seconds=self._settings.lease_seconds / REPORTS_PER_LEASE,
            mean_seconds=self._runner.durations.means(),
        )
        try:
            asked_by = await self._store.report_worker(report)
        except (StoreUnavailable, StatementRefused) as error:
            _log.warning("report not written", error=str(error))
        else:
            metrics.CLOCK_OFFSET.set((self._clock.wall() - self._database_clock.now()).total_seconds())
            self._heed(asked_by)
        metrics.OLDEST_RUN.show(self._leases.oldest_runs())

    def _heed(self, drain_asked_by: str | None) -> None:
        if drain_asked_by is not None and not self._asked_to_drain.is_set():
            _log.info("asked to drain", by=drain_asked_by)
            self._asked_to_drain.set()
