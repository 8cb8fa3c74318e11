"""What a list of jobs is asked for, and the statements that answer it.

Invariant: the bounds leave out no row that the filters let through. They follow from where rows lie: parked rows in the
far partition, ended rows at the instant they ended, claimed rows at the instant they were due.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

from ringcron.models import EARLIEST, PARKED, JobState
from ringcron.store.bounds import Bounds
from ringcron_sql import query

_ALL: Final = Bounds(EARLIEST, PARKED + timedelta(seconds=1))
_PARKED: Final = Bounds(PARKED, PARKED + timedelta(seconds=1))
_WAITING: Final[tuple[JobState, ...]] = (JobState.DUE, JobState.CLAIMED)
"""The states in which a job has a nextRunAt."""
_NEWEST_ID: Final = UUID(int=2**128 - 1)
_OLDEST_ID: Final = UUID(int=0)
_DAY: Final = timedelta(days=1)


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
class PageQuery:
    """A statement of a list and its parameters."""

    statement: LiteralString
    parameters: dict[str, Any]


def page_queries(
    wanted: JobFilter, *, after: Place | None, by_time: bool, limit: int, with_payload: bool, now: datetime
) -> Iterator[PageQuery]:
    """The statements whose rows, one after the other, are the page of at most `limit` jobs after `after`.

    Newest first; `by_time` the soonest first, and only jobs that have a next_run_at. `now` may be off by hours.
    """
    reach = reach_of(wanted, by_time=by_time, now=now)
    if reach is None:
        return
    common: dict[str, Any] = {
        "handler": wanted.handler,
        "name": wanted.name,
        "tag": wanted.tag,
        "limit": limit,
        "with_payload": with_payload,
        "states": None if reach.states is None else list(reach.states),
        "due": JobState.DUE in (reach.states or ()),
        "claimed": JobState.CLAIMED in (reach.states or ()),
        "from_at": reach.bounds.from_at,
        "until_at": reach.bounds.until_at,
    }
    if by_time:
        after_at = EARLIEST if after is None or after.next_run_at is None else after.next_run_at
        place = {"after_at": after_at, "after_id": _OLDEST_ID if after is None else after.job_id}
        begin = max(reach.bounds.from_at, after_at)
        for stretch in stretches(Bounds(begin, reach.bounds.until_at), now):
            within = {"from_at": stretch.from_at, "until_at": stretch.until_at}
            yield PageQuery(statement=query("list_jobs_by_time"), parameters={**common, **place, **within})
        return
    common["before"] = _NEWEST_ID if after is None else after.job_id
    if wanted.tag is not None:
        yield PageQuery(statement=query("list_jobs_by_tag"), parameters=common)
    elif reach.states is not None and set(reach.states) <= set(_WAITING):
        today = _midnight(now)
        old_days = {
            "late_until_at": min(today, reach.bounds.until_at),
            "near_from_at": max(today, reach.bounds.from_at),
        }
        yield PageQuery(statement=query("list_waiting_jobs"), parameters={**common, **old_days})
    else:
        yield PageQuery(statement=query("list_jobs"), parameters=common)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """The states and the stretch of next_run_at that a list has to look at."""

    states: tuple[JobState, ...] | None
    bounds: Bounds


def reach_of(wanted: JobFilter, *, by_time: bool, now: datetime) -> Reach | None:
    """Where the jobs of a filter lie; None where there can be none."""
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


def stretches(bounds: Bounds, now: datetime) -> Iterator[Bounds]:
    """The bounds in parts, soonest first: to the end of today, a week more, the rest. A part is sorted as a whole."""
    edges = [_midnight(now) + _DAY, _midnight(now) + 8 * _DAY, bounds.until_at]
    from_at = bounds.from_at
    for edge in edges:
        until_at = min(edge, bounds.until_at)
        if from_at < until_at:
            yield Bounds(from_at, until_at)
            from_at = until_at


def _bounds_of(state: JobState, now: datetime) -> Bounds:
    match state:
        case JobState.DUE:
            return Bounds(EARLIEST, PARKED)
        case JobState.PAUSED | JobState.DEAD:
            return _PARKED
        case JobState.CLAIMED | JobState.DONE | JobState.CANCELLED:
            return Bounds(EARLIEST, now + _DAY)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
