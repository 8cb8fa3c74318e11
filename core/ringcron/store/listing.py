"""What a list of jobs is asked for, and the partitions that can hold its answer.

Invariant: the bounds leave out no row that the filters let through. They follow from where rows lie: parked rows in the
far partition, ended rows at the instant they ended, claimed rows at the instant they were due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from ringcron.models import EARLIEST, PARKED, JobState
from ringcron.store.bounds import Bounds

_ALL: Final = Bounds(EARLIEST, PARKED + timedelta(seconds=1))
_PARKED: Final = Bounds(PARKED, PARKED + timedelta(seconds=1))
_WAITING: Final[tuple[JobState, ...]] = (JobState.DUE, JobState.CLAIMED)
"""The states in which a job has a nextRunAt."""
_SLACK: Final = timedelta(days=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """Which jobs a list is to hold; None does not filter.

    next_run_at in [due_after, due_before); a job that is paused or has ended has none and is in no such window.
    """

    state: JobState | None = None
    tag: str | None = None
    handler: str | None = None
    name: str | None = None
    due_after: datetime | None = None
    due_before: datetime | None = None

    @property
    def windowed(self) -> bool:
        return self.due_after is not None or self.due_before is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a page ended: the last job's id and, in a list by time, its next_run_at."""

    job_id: UUID
    next_run_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """The states and the stretch of next_run_at that a list has to look at."""

    states: tuple[JobState, ...] | None
    bounds: Bounds


def reach_of(wanted: JobFilter, *, by_time: bool, now: datetime) -> Reach | None:
    """Where the jobs of a filter lie; None where there can be none. `now` may be off by hours.

    A list `by_time` holds only jobs that have a next_run_at.
    """
    only_waiting = wanted.windowed or by_time
    if wanted.state is None:
        states, bounds = (_WAITING if only_waiting else None), _ALL
    else:
        if only_waiting and wanted.state not in _WAITING:
            return None
        states, bounds = (wanted.state,), _bounds_of(wanted.state, now)
    from_at = bounds.from_at if wanted.due_after is None else max(bounds.from_at, wanted.due_after)
    until_at = bounds.until_at if wanted.due_before is None else min(bounds.until_at, wanted.due_before)
    return Reach(states=states, bounds=Bounds(from_at, until_at)) if from_at < until_at else None


def _bounds_of(state: JobState, now: datetime) -> Bounds:
    match state:
        case JobState.DUE:
            return Bounds(EARLIEST, PARKED)
        case JobState.PAUSED | JobState.DEAD:
            return _PARKED
        case JobState.CLAIMED | JobState.DONE | JobState.CANCELLED:
            return Bounds(EARLIEST, now + _SLACK)
