"""What a leader does besides the slices: partitions are kept up, lag is counted.

Invariant: duties are independent. One that fails is logged and counted, and tried again at its next turn; it stops
neither the others nor the assignment of slices. Nothing that keeps a promise depends on them in the short run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from ringcron import metrics
from ringcron.addresses import AddressPolicy
from ringcron.clock import Clock
from ringcron.settings import CoordinatorSettings
from ringcron.store.alerting import Alerting
from ringcron.store.api import STATEMENT_SECONDS, ApiStore
from ringcron.store.census import take_census
from ringcron.store.pool import Pool
from ringcron.store.upkeep import Upkeep
from ringcron.store.zone_rules import ZoneRules
from ringcron_coordinator.alert_calls import AlertCalls
from ringcron_coordinator.alerts import Alerts
from ringcron_coordinator.epoch_log import EpochLog
from ringcron_coordinator.lag import LagReport

LAG_SECONDS: Final = 1.0
CENSUS_SECONDS: Final = 5.0
EPOCHS_SECONDS: Final = 0.5
ALERTS_SECONDS: Final = 1.0
AUDIT_SECONDS: Final = 10.0
ZONE_RULES_SECONDS: Final = 0.5
"""Between two portions of waiting jobs that are brought to this version of tzdata."""
UPKEEP_STATEMENT_SECONDS: Final = 120.0
"""Client-side limit on one use of a connection by upkeep: moving a day's rows takes a while."""
STOP_SECONDS: Final = 1.0
"""How long `stop` waits for what is under way; the rest ends by itself."""

_log = structlog.get_logger(__name__)


class Duties:
    """Those of one term: performed from `start` to `stop`."""

    def __init__(self, settings: CoordinatorSettings, *, clock: Clock) -> None:
        self._clock = clock
        self._pools = [
            Pool(
                settings.database_url,
                application_name="ringcron coordinator lag",
                max_size=1,
                seconds=STATEMENT_SECONDS,
                behind_pooler=settings.behind_pooler,
            ),
            Pool(
                settings.database_url,
                application_name="ringcron coordinator upkeep",
                max_size=2,
                seconds=UPKEEP_STATEMENT_SECONDS,
                behind_pooler=settings.behind_pooler,
            ),
        ]
        store = ApiStore(self._pools[0], clock=clock)
        self._lag = LagReport(store)
        policy = AddressPolicy(allow=settings.http_allow, deny=settings.http_deny)
        calls = None if settings.alert_url is None else AlertCalls(settings.alert_url, policy)
        alerting = Alerting(self._pools[0], clock=clock)
        self._alerts = Alerts(alerting, calls, clock, overdue_seconds=settings.overdue_seconds)
        self.epochs = EpochLog(store)
        self._upkeep = Upkeep(
            self._pools[1],
            clock,
            days_ahead=settings.days_ahead,
            keep_runs_seconds=settings.keep_runs_seconds,
            keep_jobs_seconds=settings.keep_jobs_seconds,
            keep_runs_bytes=settings.keep_runs_bytes,
        )
        self._zone_rules = ZoneRules(self._pools[1], clock)
        self._upkeep_seconds = settings.upkeep_seconds
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(repeat("lag", LAG_SECONDS, self._lag.look, clock=self._clock)),
            asyncio.create_task(repeat("census", CENSUS_SECONDS, self._take_census, clock=self._clock)),
            asyncio.create_task(repeat("epochs", EPOCHS_SECONDS, self.epochs.write, clock=self._clock)),
            asyncio.create_task(repeat("alerts", ALERTS_SECONDS, self._alerts.look, clock=self._clock)),
            asyncio.create_task(repeat("audit", AUDIT_SECONDS, self._alerts.audit, clock=self._clock)),
            asyncio.create_task(repeat("upkeep", self._upkeep_seconds, self._keep_up, clock=self._clock)),
            asyncio.create_task(repeat("zone rules", ZONE_RULES_SECONDS, self._follow_zones, clock=self._clock)),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        self._lag.clear()
        self._alerts.clear()
        for metric in (metrics.DUE_NEXT_MINUTE, metrics.DEAD_JOBS, metrics.OLDEST_SNAPSHOT):
            metric.clear()
        await asyncio.gather(*(pool.close() for pool in self._pools))

    async def _take_census(self) -> None:
        census = await take_census(self._pools[0], self._clock)
        metrics.DUE_NEXT_MINUTE.set(census.due_soon)
        metrics.DEAD_JOBS.set(census.dead)
        metrics.OLDEST_SNAPSHOT.set(census.oldest_snapshot_seconds)

    async def _keep_up(self) -> None:
        for sentence in await self._upkeep.step():
            _log.info("upkeep", did=sentence)

    async def _follow_zones(self) -> None:
        """Once per term: a process has one version of tzdata as long as it lives."""
        for move in await self._zone_rules.step():
            _log.info(
                "a tick moved with the rules of its zone",
                job=str(move.job_id),
                before=move.before.isoformat(),
                after=move.after.isoformat(),
            )


async def repeat(name: str, seconds: float, duty: Callable[[], Awaitable[None]], *, clock: Clock) -> None:
    """Perform a duty every `seconds`, for ever. A failure is counted each time, and logged when it is a new one."""
    failing: str | None = None
    while True:
        due = clock.elapsed() + seconds
        try:
            await duty()
            if failing is not None:
                _log.info("duty succeeds again", duty=name)
            failing = None
        except Exception as error:
            metrics.UPKEEP_FAILURES[name].inc()
            if failing != str(error):
                _log.warning("duty failed", duty=name, reason=str(error), error=type(error).__name__)
            failing = str(error)
        await asyncio.sleep(max(0.0, due - clock.elapsed()))
