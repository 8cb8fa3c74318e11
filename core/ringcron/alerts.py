"""Alerts for one job: whether it is late, or has not succeeded for too long. Pure.

    alertAfterLate        it is due (or its lease has lapsed), and nobody has started it so long after that
    alertIfNoSuccessFor   no run of it has succeeded for so long: since the last one, or since it was created

Invariant: a breach has one beginning, which is computed and not when somebody looked; so looking late, twice or from a
new leader finds the same breach, and it is told once. A job that is paused or dead still breaches the second: a pause
that was forgotten is a job that silently never runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from ringcron.models import JobState

LONGEST_LOOK: Final = timedelta(minutes=5)
"""A job is looked at so often although nothing should have happened: its instant may have been moved."""
BREACHED_LOOK: Final = timedelta(seconds=5)
"""The same while something is wrong, so that its end is told soon."""
SHORTEST_LOOK: Final = timedelta(seconds=1)


class AlertKind(StrEnum):
    """What is wrong with a job; label of the metric."""

    LATE = "late"
    NO_SUCCESS = "no-success"


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """A job that has an alert, as a look found it. `state` None: it is gone."""

    job_id: UUID
    now: datetime
    state: JobState | None
    after_late_seconds: float | None
    if_no_success_seconds: float | None
    since: datetime
    """Its creation, or the end of its last success that an earlier look saw."""
    last_success: datetime | None = None
    """Since then; None: none, or it did not matter yet."""
    next_run_at: datetime | None = None
    lease_until: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What a look came to. Instants are when the breach began; None: it is in order."""

    job_id: UUID
    since: datetime
    look_at: datetime
    late_since: datetime | None = None
    no_success_since: datetime | None = None
    over: bool = False
    """It has no alert any more: never look again."""


def judge(watched: Watched) -> Judgement:
    """Whether the job breaches what was promised of it, and when to look again."""
    now = watched.now
    since = watched.since if watched.last_success is None else max(watched.since, watched.last_success)
    asked = watched.after_late_seconds is not None or watched.if_no_success_seconds is not None
    if not asked or watched.state in (None, JobState.DONE, JobState.CANCELLED):
        return Judgement(job_id=watched.job_id, since=since, look_at=now + LONGEST_LOOK, over=True)
    late_at, no_success_at = _late_at(watched), _no_success_at(watched, since)
    late = late_at if late_at is not None and late_at <= now else None
    no_success = no_success_at if no_success_at is not None and no_success_at <= now else None
    ahead = [instant for instant in (late_at, no_success_at) if instant is not None and instant > now]
    longest = LONGEST_LOOK if late is None and no_success is None else BREACHED_LOOK
    return Judgement(
        job_id=watched.job_id,
        since=since,
        look_at=max(now + SHORTEST_LOOK, min([now + longest, *ahead])),
        late_since=late,
        no_success_since=no_success,
    )


def _late_at(watched: Watched) -> datetime | None:
    """From when on the job is late if nothing happens."""
    due = watched.next_run_at if watched.state is JobState.DUE else None
    if watched.state is JobState.CLAIMED:
        due = watched.lease_until  # once it has lapsed the job is nobody's, and due
    if watched.after_late_seconds is None or due is None:
        return None
    return due + timedelta(seconds=watched.after_late_seconds)


def _no_success_at(watched: Watched, since: datetime) -> datetime | None:
    if watched.if_no_success_seconds is None:
        return None
    return since + timedelta(seconds=watched.if_no_success_seconds)


def sentence(kind: AlertKind, *, job: str, began: datetime | None, limit_seconds: float, state: JobState | None) -> str:
    """What is told of a breach, or (`began` None) of its end."""
    if began is None:
        return f"{job} is in order again" if kind is AlertKind.NO_SUCCESS else f"{job} is no longer late"
    where = "" if state is None else f"; it is {state.value}"
    if kind is AlertKind.LATE:
        return f"{job} has not started {limit_seconds:g} s after it was due{where}"
    return f"{job} has had no success for {limit_seconds:g} s{where}"
