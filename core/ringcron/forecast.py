"""What is coming: how many jobs become due in each second ahead, how much work that is, and when it will be over.

    streams ──expand──▶ Coming (due and work per second) ──predict──▶ Prediction (peak, worst delay, clears after)
                                                         └─desired_capacity──▶ slots for runs, before the spike

Invariant: pure, and bounded: no more than MOST_TICKS ticks are counted, and `complete` says whether that was all. It is
for people and for scaling; nothing that keeps a promise depends on it.

Work is measured in seconds of one run. Pending work drains at the pool's capacity (runs at the same time), as a fluid:
a spike of 2,000 jobs of 5 s is 10,000 s of work, which 200 runs at a time finish in 50 s. Jitter of ticks that no row
stands for yet is left out; the rows themselves have it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from ringcron.errors import ScheduleError
from ringcron.schedule import Schedule

MOST_TICKS: Final = 200_000
UNMEASURED_SECONDS: Final = 1.0
"""How long a run of a handler is taken to last of which none has been measured."""
_NOTHING: Final = 1e-6
"""Seconds of work that are a rest of adding up, and no work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """Jobs of one handler and schedule (None: one-offs) that are next due in the second that begins at `first`."""

    handler: str
    schedule: Schedule | None
    first: datetime
    jobs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Coming:
    """Second by second from `start`: how many jobs become due, and the seconds of work that they bring."""

    start: datetime
    due: Sequence[int]
    work: Sequence[float]
    complete: bool = True
    """False: there is more than was counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """How the pool gets through. Seconds count from the start; None: not within the horizon."""

    peak_second: int | None
    """The one with the most due jobs; None: nothing is due."""
    peak_due: int
    worst_second: int
    """The one from which on the last job waits longest; 0 also where what waits at the start is the worst."""
    worst_delay_seconds: float | None
    """How late the last job of the worst moment starts; None: nobody runs anything."""
    clears_after_seconds: int | None
    """When nothing waits any more: after what waits now and the worst moment."""


@dataclass(slots=True)
class _Count:
    """What expand fills."""

    start: datetime
    due: list[int]
    work: list[float]
    ticks_left: int = MOST_TICKS
    ticks: dict[int, list[datetime]] = field(default_factory=dict)
    """Of a schedule (by identity), the ticks that are counted, in order."""

    def add(self, instant: datetime, jobs: int, seconds_each: float) -> None:
        second = math.floor((instant - self.start).total_seconds())
        if 0 <= second < len(self.due):
            self.due[second] += jobs
            self.work[second] += jobs * seconds_each


def expand(streams: Iterable[Stream], *, start: datetime, seconds: int, mean_seconds: Mapping[str, float]) -> Coming:
    """Count every firing in [start, start + seconds): the rows', and those that follow from their schedules.

    `mean_seconds`: how long a run lasts, by handler. A schedule that cannot be evaluated counts its next firing only.
    """
    count = _Count(start=start, due=[0] * seconds, work=[0.0] * seconds)
    until = start + timedelta(seconds=seconds)
    for stream in sorted(streams, key=lambda stream: stream.first):
        each = mean_seconds.get(stream.handler, UNMEASURED_SECONDS)
        count.add(stream.first, stream.jobs, each)
        if stream.schedule is not None:
            for tick in _following(count, stream.schedule, stream.first, until):
                count.add(tick, stream.jobs, each)
    return Coming(start=start, due=count.due, work=count.work, complete=count.ticks_left > 0)


def _following(count: _Count, schedule: Schedule, first: datetime, until: datetime) -> Iterable[datetime]:
    """The ticks after the second of `first`; streams of one schedule share them."""
    known = count.ticks.get(id(schedule))
    if known is None:
        known = count.ticks[id(schedule)] = []
        after = first
        while count.ticks_left > 0:
            try:
                tick = schedule.next_after(after)
            except ScheduleError:
                break
            if tick is None or tick >= until:
                break
            count.ticks_left -= 1
            known.append(tick)
            after = tick
    second_ends = first + timedelta(seconds=1)
    return (tick for tick in known if tick >= second_ends)


def predict(coming: Coming, *, backlog_work: float, capacity: int) -> Prediction:
    """`backlog_work`: seconds of work that waits or runs at the start. `capacity`: runs at the same time, ≥ 0."""
    peak_due = max(coming.due, default=0)
    pending = worst = backlog_work
    worst_at = 0
    left = []
    for second, work in enumerate(coming.work):
        pending += work
        if pending > worst:
            worst, worst_at = pending, second
        pending = max(0.0, pending - capacity)
        left.append(pending)
    clears = next((second + 1 for second in range(worst_at, len(left)) if left[second] <= _NOTHING), None)
    if capacity > 0:
        worst_delay: float | None = worst / capacity
    else:
        worst_delay = None if worst > 0 else 0.0
    return Prediction(
        peak_second=coming.due.index(peak_due) if peak_due else None,
        peak_due=peak_due,
        worst_second=worst_at,
        worst_delay_seconds=worst_delay,
        clears_after_seconds=0 if worst <= 0 else clears,
    )


def desired_capacity(coming: Coming, *, backlog_work: float, lead_seconds: int, clear_seconds: int) -> int:
    """How many runs at the same time clear all that is due within `lead_seconds`, each spike within `clear_seconds`.

    What is due later can still be answered in time when this is asked again: `lead_seconds` is how long a new worker
    takes to be ready. `coming` should reach lead_seconds + clear_seconds ahead.
    """
    passed = list(accumulate(coming.work[: lead_seconds + clear_seconds], initial=0.0))

    def due_within(begin: int) -> float:
        """The work that becomes due in the `clear_seconds` from `begin` on."""
        return passed[min(begin + clear_seconds, len(passed) - 1)] - passed[min(begin, len(passed) - 1)]

    most = max(backlog_work + due_within(0), *(due_within(begin) for begin in range(lead_seconds + 1)))
    return math.ceil((most - _NOTHING) / clear_seconds)
