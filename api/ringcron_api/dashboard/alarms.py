"""What the dashboard has to say of alerts: the jobs that breach one, and those that nobody holds. Pure.

Invariant: the leader judges (`ringcron.alerts`); here is only told what it wrote down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from ringcron.alerts import AlertKind
from ringcron.models import JobState
from ringcron.store.alerting import SHOWN, Breach
from ringcron_api.dashboard.phrases import span

_WORDS: Final = {AlertKind.LATE: "has not started", AlertKind.NO_SUCCESS: "has had no success"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarm:
    """One alert of a job that is breached since `since`."""

    job_id: UUID
    job: str
    handler: str
    state: JobState
    kind: AlertKind
    since: datetime
    limit_seconds: float

    @property
    def sentence(self) -> str:
        """`nightly has had no success for 1 d; it is paused`"""
        return f"{self.job} {limit_words(self.kind, self.limit_seconds)}; it is {self.state.value}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarms:
    """What is breached, what began first coming first. `capped`: there may be more."""

    found: tuple[Alarm, ...] = ()
    capped: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlooked:
    """Enabled jobs of a handler that are long overdue and that nobody holds; `since`: the oldest is due."""

    handler: str
    jobs: int
    since: datetime
    oldest_id: UUID


def alarms_of(breaches: Sequence[Breach]) -> Alarms:
    """Each breached alert by itself. Where the limit is gone, the breach is over and only waits to be told."""
    found = []
    for breach in breaches:
        limits = (
            (AlertKind.LATE, breach.late_since, breach.after_late_seconds),
            (AlertKind.NO_SUCCESS, breach.no_success_since, breach.if_no_success_seconds),
        )
        found += [
            Alarm(
                job_id=breach.job_id,
                job=breach.name or breach.key or str(breach.job_id),
                handler=breach.handler,
                state=breach.state,
                kind=kind,
                since=since,
                limit_seconds=limit,
            )
            for kind, since, limit in limits
            if since is not None and limit is not None
        ]
    return Alarms(found=tuple(sorted(found, key=lambda alarm: alarm.since)), capped=len(breaches) >= SHOWN)


def limit_words(kind: AlertKind, seconds: float) -> str:
    """`has not started 30 s after it was due`"""
    return f"{_WORDS[kind]} {f'{span(seconds)} after it was due' if kind is AlertKind.LATE else f'for {span(seconds)}'}"
