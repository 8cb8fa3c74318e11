"""The local minutes that a cron expression names, regardless of any zone.

Invariant: this is the only place that decides whether a day or a minute matches. A local time is a number: minutes
since 1970-01-01T00:00 of the local calendar. A year's matching days depend only on its first weekday and on whether it
is a leap year, so an expression has at most 14 lists of days, and counting is arithmetic on them, never stepping.

The day fields are joined by OR only when neither begins with `*`, otherwise by AND (the Vixie rule):

    0 0 1-31 * 1     every day          0 0 * * 1      Mondays
    0 0 */2 * 1      Mondays that are odd days
    0 0 L * 5        the last day of the month, and every Friday
"""

from __future__ import annotations

from bisect import bisect_left
from calendar import isleap, monthrange
from datetime import date
from functools import lru_cache
from typing import Final

from croniter import croniter

from ringcron.cron.fields import FIELDS
from ringcron.cron.tokens import LAST, CheckedCron
from ringcron.cron.zones import DAY

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_SAMPLE_YEARS: Final = {
    (date(year, 1, 1).weekday(), isleap(year)): year for year in range(2000, 2028 + 12)
}  # one year of each of the 14 kinds


class LocalTimes:
    """What one checked expression names."""

    def __init__(self, checked: CheckedCron) -> None:
        minute, hour, self._day, self._month, self._weekday = checked.fields
        minutes, hours, self._days, self._months, self._weekdays = _expand(checked)
        self.literal = minute.starred or hour.starred
        """Clock changes: fire at each instant whose local time matches, neither moved nor only once."""
        self.minutes = tuple(60 * h + m for h in sorted(hours) for m in sorted(minutes))
        """The minutes of a matching day, 0 to 1439, ascending."""
        self._either = not self._day.starred and not self._weekday.starred
        self._kinds: dict[tuple[int, bool], tuple[int, ...]] = {}

    @property
    def dateless(self) -> str | None:
        """Why no day of any year matches, as a sentence; None when some do."""
        if any(self._days_of(year) for year in _SAMPLE_YEARS.values()):
            return None
        return (
            f"never has a tick: day-of-month (field 3) `{self._day.text}` with day-of-week (field 5) "
            f"`{self._weekday.text}` does not come in month (field 4) `{self._month.text}`"
        )

    def first(self, low: int, high: int) -> int | None:
        """The first matching local minute in [low, high)."""
        day, minute = divmod(low, DAY)
        year, start = _year_of(day)
        days = self._days_of(year)
        at = bisect_left(days, day - start)
        if at < len(days) and days[at] == day - start:
            within = bisect_left(self.minutes, minute)
            if within < len(self.minutes):
                found = day * DAY + self.minutes[within]
                return found if found < high else None
            at += 1
        while at >= len(days):
            year += 1
            start = _start_of(year)
            if start * DAY >= high:
                return None
            days, at = self._days_of(year), 0
        found = (start + days[at]) * DAY + self.minutes[0]
        return found if found < high else None

    def last(self, low: int, high: int) -> int | None:
        """The last matching local minute in [low, high)."""
        if high <= low:
            return None
        day, minute = divmod(high - 1, DAY)
        year, start = _year_of(day)
        days = self._days_of(year)
        at = bisect_left(days, day - start)
        if at < len(days) and days[at] == day - start:
            within = bisect_left(self.minutes, minute + 1)
            if within > 0:
                found = day * DAY + self.minutes[within - 1]
                return found if found >= low else None
        while at == 0:
            if start * DAY <= low:
                return None
            year -= 1
            start = _start_of(year)
            days = self._days_of(year)
            at = len(days)
        found = (start + days[at - 1]) * DAY + self.minutes[-1]
        return found if found >= low else None

    def count(self, low: int, high: int) -> int:
        """How many matching local minutes lie in [low, high)."""
        if high <= low:
            return 0
        first_year, last_year = _year_of(low // DAY)[0], _year_of(high // DAY)[0]
        whole_days = sum(len(self._days_of(year)) for year in range(first_year, last_year))
        return whole_days * len(self.minutes) + self._before(high) - self._before(low)

    def _before(self, local: int) -> int:
        """How many matching minutes of its year lie before a local minute."""
        day, minute = divmod(local, DAY)
        year, start = _year_of(day)
        days = self._days_of(year)
        at = bisect_left(days, day - start)
        today = bisect_left(self.minutes, minute) if at < len(days) and days[at] == day - start else 0
        return at * len(self.minutes) + today

    def _days_of(self, year: int) -> tuple[int, ...]:
        """The matching days of a year, counted from 0."""
        kind = (date(year, 1, 1).weekday(), isleap(year))
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = tuple(self._find_days(year))
        return found

    def _find_days(self, year: int) -> list[int]:
        found: list[int] = []
        first_of_month = 0
        for month in range(1, 13):
            weekday, length = monthrange(year, month)
            if month in self._months:
                found += [
                    first_of_month + day - 1
                    for day in range(1, length + 1)
                    if self._matches(day, (weekday + day) % 7, length, (weekday + 1) % 7)
                ]
            first_of_month += length
        return found

    def _matches(self, day: int, weekday: int, length: int, first_weekday: int) -> bool:
        """Whether a day of a month of `length` days matches; weekdays count from Sunday = 0."""
        nth = self._weekday.nth
        by_day = (
            day in self._days
            or (self._day.last_day and day == length)
            or (self._day.nearest is not None and day == _nearest(self._day.nearest, first_weekday, length))
        )
        by_weekday = (
            weekday in self._weekdays
            or (weekday, (day + 6) // 7) in nth
            or ((weekday, LAST) in nth and day + 7 > length)
        )
        return (by_day or by_weekday) if self._either else (by_day and by_weekday)


def _expand(checked: CheckedCron) -> list[frozenset[int]]:
    """The values of each field; none where a field has special tokens only."""
    expanded, _ = croniter.expand(" ".join(field.plain or "*" for field in checked.fields))
    values: list[frozenset[int]] = []
    for rule, field, found in zip(FIELDS, checked.fields, expanded, strict=True):
        if not field.plain:
            values.append(frozenset())
        elif found == ["*"]:
            values.append(frozenset(range(rule.low, rule.high + 1)))
        else:
            values.append(frozenset(int(value) for value in found))
    return values


def _nearest(day: int, first_weekday: int, length: int) -> int:
    """The weekday nearest to a day of the month, never leaving the month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


@lru_cache(maxsize=4096)
def _start_of(year: int) -> int:
    """Days from 1970-01-01 to the first of January of `year`."""
    return date(year, 1, 1).toordinal() - _EPOCH_DAY


def _year_of(day: int) -> tuple[int, int]:
    """(the year in which a day lies, the day number of its first of January)."""
    year = date.fromordinal(day + _EPOCH_DAY).year
    return year, _start_of(year)
