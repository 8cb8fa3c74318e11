"""Ticks of a cron expression in a zone: next, previous and count, from one enumeration.

Invariant: an instant is a tick exactly when `window` says so, for each of the three questions. Per stretch of constant
offset the local times of the stretch are one interval, so every answer is arithmetic on intervals.

Clock changes (the Debian rule). Minute or hour beginning with `*`: every instant whose local time matches. Otherwise a
local time that the change leaves out ticks once, at the first instant after it, and one that comes twice ticks on its
first pass only:

                    gap (02:00 → 03:00)                    fold (03:00 → 02:00)
    */30 * * * *    01:30, 03:00                           02:00, 02:30, 02:00 again, 02:30 again, 03:00
    30 2 * * *      03:00, moved                           02:30 on the first pass
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from ringcron.cron.local_times import LocalTimes
from ringcron.cron.tokens import CheckedCron, check_cron
from ringcron.cron.zones import DAY, Stretch, Zone, stretches
from ringcron.models import EARLIEST, LATEST

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE: Final = timedelta(minutes=1)
_FIRST: Final = (EARLIEST - EPOCH) // _MINUTE
_END: Final = (LATEST - EPOCH) // _MINUTE
HORIZON_YEARS: Final = 40
"""How far ahead a next tick is sought: 29 February falls on a given weekday at least once in forty years."""


class ClockMark(StrEnum):
    """What a clock change did to a tick."""

    MOVED = "moved"  # its local time is left out; it ticks at the first instant after the gap
    FIRST_PASS = "first-pass"  # its local time comes twice, and this is the first
    SECOND_PASS = "second-pass"  # … and this is the second; only for expressions that begin with `*`


class _Window(NamedTuple):
    """The part of a stretch that lies between two instants, as local times."""

    low: int  # local minutes [low, high)
    high: int
    offset: int
    moved: int | None  # the instant just after a gap that holds a matching time


class Cron:
    """A compiled expression in a zone; one object per (expression, zone), compared by identity."""

    def __init__(self, checked: CheckedCron, times: LocalTimes, zone: Zone) -> None:
        self.text = checked.text
        self.zone = zone
        self._times = times

    @property
    def dateless(self) -> str | None:
        """Why no day of any year matches, or None."""
        return self._times.dateless

    def next(self, after: datetime, years: int = HORIZON_YEARS) -> datetime | None:
        """The first tick strictly after `after`, at most `years` later; None when there is none."""
        found = _next(self, max((after - EPOCH) // _MINUTE + 1, _FIRST), years)
        return None if found is None else EPOCH + found * _MINUTE

    def previous(self, until: datetime, after: datetime) -> datetime | None:
        """The last tick in (after, until]."""
        low, high = _bounds(after, until)
        for window in self._windows(low, high, backwards=True):
            found = self._times.last(window.low, window.high)
            if found is not None:
                return EPOCH + (found - window.offset) * _MINUTE
            if window.moved is not None:
                return EPOCH + window.moved * _MINUTE
        return None

    def count(self, after: datetime, until: datetime) -> int:
        """How many ticks lie in (after, until]."""
        total = 0
        for window in self._windows(*_bounds(after, until)):
            total += self._times.count(window.low, window.high)
            if window.moved is not None and self._times.first(window.low, window.low + 1) is None:
                total += 1  # else the moved tick is the same instant as the first one of the stretch
        return total

    def mark(self, tick: datetime) -> ClockMark | None:
        """What a clock change did to this tick, or None."""
        minute = (tick - EPOCH) // _MINUTE
        if any(window.moved == minute for window in self._windows(minute, minute + 1)):
            return ClockMark.MOVED
        match self.zone.twice(minute):
            case 0:
                return ClockMark.FIRST_PASS
            case 1:
                return ClockMark.SECOND_PASS
            case _:
                return None

    def seek(self, low: int, years: int) -> int | None:
        """The first tick at or after the minute `low`, at most `years` later."""
        high = min(low + years * 366 * DAY, _END)
        while low < high:
            # What lies before the next matching day is passed over, with the offsets of its years.
            local = self._times.first(low - 2 * DAY, high + 2 * DAY)
            if local is None:
                return None
            low = max(low, local - 2 * DAY)
            until = min(low + 5 * DAY, high)
            for window in self._windows(low, until):
                if window.moved is not None:
                    return window.moved
                found = self._times.first(window.low, window.high)
                if found is not None:
                    return found - window.offset
            low = until
        return None

    def _windows(self, low: int, high: int, *, backwards: bool = False) -> Iterator[_Window]:
        """The windows of the instants [low, high), in order of time or in the opposite order."""
        if high <= low:
            return
        years = range(_year(low), _year(high - 1) + 1)
        for year in reversed(years) if backwards else years:
            found = stretches(self.zone, year)
            for stretch in reversed(found) if backwards else found:
                if stretch.start < high and low < stretch.end:
                    yield self._window(stretch, low, high)

    def _window(self, stretch: Stretch, low: int, high: int) -> _Window:
        start, end, offset, before = stretch
        first = max(low, start) + offset
        moved = None
        if not self._times.literal and offset != before:
            first = max(first, start + before)  # a fold: what came before is the first pass
            if low <= start < high and self._times.first(start + before, start + offset) is not None:
                moved = start
        return _Window(first, min(high, end) + offset, offset, moved)


@lru_cache(maxsize=65536)
def _next(cron: Cron, low: int, years: int) -> int | None:
    # Jobs that share an expression ask the same question in the same minute.
    return cron.seek(low, years)


@lru_cache(maxsize=4096)
def compile_cron(text: str, zone: Zone) -> Cron:
    """The enumerator of an expression in a zone; ScheduleError with its first fault when it is refused."""
    checked = check_cron(text)
    if isinstance(checked, list):
        raise checked[0]
    return Cron(checked, _local_times(checked), zone)


@lru_cache(maxsize=4096)
def _local_times(checked: CheckedCron) -> LocalTimes:
    return LocalTimes(checked)


def _bounds(after: datetime, until: datetime) -> tuple[int, int]:
    """The minutes [low, high) that lie in (after, until]."""
    return max((after - EPOCH) // _MINUTE + 1, _FIRST), min((until - EPOCH) // _MINUTE + 1, _END)


def _year(minute: int) -> int:
    return (EPOCH + minute * _MINUTE).year
