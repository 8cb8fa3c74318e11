"""Alerts: jobs that breach what was asked of them, and enabled jobs that silently do not run.

Invariant: it needs PostgreSQL alone, no worker and no API; so it speaks up exactly when nothing runs. A breach shows in
the database and in the metrics whether or not anybody could be told. Only the leader looks; two that do for a moment
write the same and may tell a breach twice (its Idempotency-Key is the same).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import structlog

from ringcron import metrics
from ringcron.alerts import AlertKind, judge, sentence
from ringcron.clock import Clock
from ringcron.instants import format_instant
from ringcron.store.alerting import LOOKED_AT, Alerting, Breach
from ringcron_coordinator.alert_calls import AlertCalls, NotTold

TOLD_AT_ONCE: Final = 20
"""Calls of one turn: a turn must end."""
LONGEST_WAIT_SECONDS: Final = 60.0

_log = structlog.get_logger(__name__)


class Alerts:
    """The alerts of one term. `calls` None: nobody is called."""

    def __init__(self, store: Alerting, calls: AlertCalls | None, clock: Clock, *, overdue_seconds: float) -> None:
        self._store = store
        self._calls = calls
        self._clock = clock
        self._overdue_seconds = overdue_seconds
        self._failures = 0
        self._not_before = 0.0
        self._forgotten: frozenset[str] = frozenset()

    async def look(self) -> None:
        """Look at the jobs whose time has come, and tell what began or ended. Raises StoreUnavailable."""
        while True:
            watched = await self._store.watched()
            if watched:
                await self._store.write_judgements([judge(one) for one in watched])
            if len(watched) < LOOKED_AT:
                break
        counts = await self._store.alert_counts()
        metrics.JOB_ALERTS.show({kind.value: float(count) for kind, count in counts.items()})
        if self._clock.elapsed() >= self._not_before:
            await self._tell()

    async def audit(self) -> None:
        """Count the enabled jobs that nobody runs. Raises StoreUnavailable."""
        found = await self._store.forgotten(self._overdue_seconds)
        metrics.SILENT_JOBS.set(sum(one.jobs for one in found))
        for one in found:
            if one.handler not in self._forgotten:
                _log.error(
                    "jobs are long overdue and nobody holds them",
                    handler=one.handler,
                    jobs=one.jobs,
                    oldest_seconds=round(one.oldest_seconds, 1),
                    oldest=str(one.oldest_id),
                )
        self._forgotten = frozenset(one.handler for one in found)

    def clear(self) -> None:
        """Show nothing any more."""
        metrics.JOB_ALERTS.clear()
        metrics.SILENT_JOBS.clear()

    async def _tell(self) -> None:
        untold = [(breach, *what) for breach in await self._store.breaches() for what in breach.untold()]
        for breach, kind, began in untold[:TOLD_AT_ONCE]:
            document = document_of(breach, kind, began)
            _log.warning("job alert", **{key: value for key, value in document.items() if key != "type"})
            if self._calls is not None:
                try:
                    await self._calls.tell(document, once=f"{breach.job_id}/{kind}/{document['began']}")
                except NotTold as reason:
                    self._failures += 1
                    wait = min(2.0**self._failures, LONGEST_WAIT_SECONDS)
                    self._not_before = self._clock.elapsed() + wait
                    _log.error("an alert could not be told", reason=str(reason), again_in_seconds=wait)
                    return
            self._failures = 0
            await self._store.told(breach.job_id, kind, began)


def document_of(breach: Breach, kind: AlertKind, began: datetime | None) -> Mapping[str, Any]:
    """What is told: as JSON has it. `began` null: it is over."""
    limit = breach.after_late_seconds if kind is AlertKind.LATE else breach.if_no_success_seconds
    job = breach.key or breach.name or str(breach.job_id)
    return {
        "type": "ringcron.job-alert",
        "kind": kind.value,
        "jobId": str(breach.job_id),
        "key": breach.key,
        "name": breach.name,
        "handler": breach.handler,
        "state": breach.state.value,
        "began": None if began is None else format_instant(began),
        "limitSeconds": limit,
        "sentence": sentence(kind, job=job, began=began, limit_seconds=limit or 0.0, state=breach.state),
    }
