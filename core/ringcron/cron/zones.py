"""Time zones, from the `tzdata` package only.

Invariant: the machine's zone files are never read; two machines with one version of the package agree on every instant.
A zone is seen here as stretches of constant offset to UTC, in whole minutes, found year by year; since 2000 every
offset and every change lies on a whole minute, and no two changes of one zone lie within six days (both are tested).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import tzdata

DAY: Final = 1440  # minutes
_LOOK: Final = 5 * DAY  # changes of a zone lie further apart than this
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE: Final = timedelta(minutes=1)


class Stretch(NamedTuple):
    """A time of constant offset. All in minutes; instants count from 1970 in UTC."""

    start: int
    end: int  # exclusive
    offset: int  # local = UTC + offset
    before: int  # the offset just before `start`


class Zone:
    """One zone of the tz database."""

    def __init__(self, name: str, info: ZoneInfo) -> None:
        self.name = name
        self._info = info

    def offset(self, minute: int) -> int:
        """The offset in force at an instant, in minutes."""
        local = (_EPOCH + minute * _MINUTE).astimezone(self._info)
        return (local.utcoffset() or timedelta(0)) // _MINUTE

    def twice(self, minute: int) -> int | None:
        """0 or 1 when the local time of this instant comes twice: its first or its second pass. Else None."""
        local = (_EPOCH + minute * _MINUTE).astimezone(self._info)
        other = local.replace(fold=1 - local.fold)
        return local.fold if other.utcoffset() != local.utcoffset() else None


def year_start(year: int) -> int:
    """Minutes from 1970 to the first of January of `year`, in UTC."""
    return (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // _MINUTE


@lru_cache(maxsize=16384)
def stretches(zone: Zone, year: int) -> tuple[Stretch, ...]:
    """The stretches that together are the year `year` of UTC."""
    start, end = year_start(year), year_start(year + 1)
    before, offset = zone.offset(start - 1), zone.offset(start)
    found: list[Stretch] = []
    seen = start
    for look in (*range(start + _LOOK, end - 1, _LOOK), end - 1):
        then = zone.offset(look)
        if then != offset:
            change = _change(zone, seen, look, offset)
            found.append(Stretch(start, change, offset, before))
            start, before, offset = change, offset, then
        seen = look
    found.append(Stretch(start, end, offset, before))
    return tuple(found)


def _change(zone: Zone, low: int, high: int, offset: int) -> int:
    """The first minute in (low, high] at which `offset` is no longer in force."""
    while high - low > 1:
        middle = (low + high) // 2
        if zone.offset(middle) == offset:
            low = middle
        else:
            high = middle
    return high


@cache
def zone_names() -> frozenset[str]:
    """The names that a schedule may use."""
    return frozenset(files(tzdata).joinpath("zones").read_text("ascii").split())


@cache
def known_zone(name: str) -> Zone:
    """The zone of that name; KeyError when the tz database has none. One object per name, shared."""
    if name not in zone_names():
        raise KeyError(name)
    with files(tzdata).joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return Zone(name, ZoneInfo.from_file(file, key=name))


@lru_cache(maxsize=256)
def nearest_zone(name: str) -> str | None:
    """The known name that was probably meant, or None."""
    if len(name) > 64:
        return None
    folded = {zone.casefold(): zone for zone in sorted(zone_names())}
    wanted = name.strip().replace(" ", "_").casefold()
    if wanted in folded:
        return folded[wanted]
    cities = {zone.rsplit("/", 1)[-1]: full for zone, full in folded.items() if "/" in zone}
    city = wanted.rsplit("/", 1)[-1]
    if city in cities:
        return cities[city]
    close = get_close_matches(wanted, folded, n=1)
    if close:
        return folded[close[0]]
    close = get_close_matches(city, cities, n=1)
    return cities[close[0]] if close else None


def tzdata_version() -> str:
    """The release of the tz database in use, such as `2026a`: stored beside each recurring job."""
    return tzdata.IANA_VERSION
