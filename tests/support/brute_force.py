"""The judge of cron ticks: every minute of a span, asked one by one of zoneinfo.

Shares no code with ringcron.cron: it reads the text on its own, slowly and plainly, and takes the rule for clock
changes word for word. It reads only expressions that the strict reader accepts.
"""

from __future__ import annotations

from calendar import monthrange, weekday
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import NamedTuple
from zoneinfo import ZoneInfo

import tzdata

MINUTE = timedelta(minutes=1)
_NAMES = {
    3: dict(zip("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), range(1, 13), strict=True)),  # noqa: SIM905
    4: dict(zip("SUN MON TUE WED THU FRI SAT".split(), range(7), strict=True)),  # noqa: SIM905
}
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@cache
def zone_info(name: str) -> ZoneInfo:
    """The zone from the tzdata package, without ringcron."""
    with files(tzdata).joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@cache
def zones_by_rules() -> dict[bytes, list[str]]:
    """Every zone name of the tz database, the names that share one file together."""
    found: dict[bytes, list[str]] = {}
    for name in files(tzdata).joinpath("zones").read_text("ascii").split():
        found.setdefault(files(tzdata).joinpath("zoneinfo", *name.split("/")).read_bytes(), []).append(name)
    return found


class LocalMinute(NamedTuple):
    """One minute of UTC and the local time that zoneinfo gives it."""

    instant: datetime
    local: datetime  # naive
    second_pass: bool
    left_out: tuple[datetime, ...]  # local times that the clock jumped over just before


def local_minutes(zone: str, start: datetime, minutes: int) -> list[LocalMinute]:
    """Every minute from `start` on, which is a whole minute."""
    info = zone_info(zone)
    found: list[LocalMinute] = []
    before = (start - MINUTE).astimezone(info).replace(tzinfo=None)
    for n in range(minutes):
        instant = start + n * MINUTE
        aware = instant.astimezone(info)
        local = aware.replace(tzinfo=None, fold=0)
        jumped = (local - before) // MINUTE - 1
        left_out = tuple(before + (m + 1) * MINUTE for m in range(jumped)) if jumped > 0 else ()
        found.append(LocalMinute(instant, local, aware.fold == 1, left_out))
        before = local
    return found


class Reference:
    """One expression, read plainly."""

    def __init__(self, expression: str) -> None:
        self.fields = _ALIASES.get(expression, expression).split()
        self.every_match = self.fields[0].startswith("*") or self.fields[1].startswith("*")
        self._minutes = self._plain(0, self.fields[0])
        self._hours = self._plain(1, self.fields[1])
        self._days: dict[date, bool] = {}

    def matches(self, local: datetime) -> bool:
        if local.minute not in self._minutes or local.hour not in self._hours:
            return False
        day = local.date()
        if day not in self._days:
            self._days[day] = self._day_matches(day)
        return self._days[day]

    def ticks(self, minutes: list[LocalMinute]) -> list[datetime]:
        """The ticks of a span."""
        if self.every_match:
            return [m.instant for m in minutes if self.matches(m.local)]
        return [
            m.instant
            for m in minutes
            if (not m.second_pass and self.matches(m.local))
            or (m.left_out and any(self.matches(local) for local in m.left_out))
        ]

    def _day_matches(self, day: date) -> bool:
        if day.month not in self._plain(3, self.fields[3]):
            return False
        by_day = any(self._day_token(token, day) for token in self.fields[2].split(","))
        by_weekday = any(self._weekday_token(token, day) for token in self.fields[4].split(","))
        if self.fields[2].startswith("*") or self.fields[4].startswith("*"):
            return by_day and by_weekday
        return by_day or by_weekday

    def _day_token(self, token: str, day: date) -> bool:
        length = monthrange(day.year, day.month)[1]
        if token == "L":
            return day.day == length
        if token.endswith("W"):
            wanted = int(token[:-1])
            workdays = [d for d in range(1, length + 1) if weekday(day.year, day.month, d) < 5]
            # A tie (two days back or one on) cannot be: the nearest of a weekend is one day off, or two at the edge.
            return day.day == min(workdays, key=lambda d: abs(d - wanted))
        return day.day in self._plain(2, token)

    def _weekday_token(self, token: str, day: date) -> bool:
        names = _NAMES[4]
        today = day.isoweekday() % 7
        if token.startswith("L"):
            return today == int(token[1:]) % 7 and (day + timedelta(days=7)).month != day.month
        if "#" in token:
            wanted, nth = token.split("#")
            number = names[wanted] if wanted in names else int(wanted) % 7
            return today == number and (day.day - 1) // 7 + 1 == int(nth)
        return today in self._plain(4, token)

    def _plain(self, field: int, text: str) -> set[int]:
        low, high = _RANGES[field]
        values: set[int] = set()
        for token in text.split(","):
            span, _, step = token.partition("/")
            if span == "*":
                first, last = low, high
            else:
                head, dash, tail = span.partition("-")
                first = self._number(field, head)
                last = self._number(field, tail) if dash else (high if step else first)
            if field == 4 and last == 7 and first == 0:
                last = 6
            if field == 4 and not (first < last):
                first, last = first % 7, last % 7
            size = high - low + 1
            stop = last if last >= first else last + size
            values |= {(value - low) % size + low for value in range(first, stop + 1, int(step or 1))}
        return values

    def _number(self, field: int, text: str) -> int:
        return _NAMES[field][text] if text.isalpha() else int(text)


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)
