"""No difference between the enumerator and a minute-by-minute judge, in every zone of the tz database.

Random expressions over every clock change of 2024 to 2028, and over many months. `RINGCRON_CRON_SEEDS=50` runs fifty
seeds instead of one; a failure names its seed, zone and expression. `RINGCRON_CRON_SEED=7` begins with seed 7.
"""

from __future__ import annotations

import os
import random
import struct
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from ringcron.cron import ClockMark, Cron, compile_cron, known_zone
from ringcron.schedule import Schedule
from tests.support.brute_force import MINUTE, LocalMinute, Reference, local_minutes, utc, zone_info, zones_by_rules
from tests.support.random_cron import random_expression

FIRST_SEED = int(os.environ.get("RINGCRON_CRON_SEED", "1"))
SEEDS = range(FIRST_SEED, FIRST_SEED + int(os.environ.get("RINGCRON_CRON_SEEDS", "1")))
EXPRESSIONS_PER_CHANGE = 3
BEGIN, END = utc(2024, 1, 1), utc(2029, 1, 1)
GROUPS = 8
ZONES = sorted(names[0] for names in zones_by_rules().values())


def changes(zone: str) -> list[datetime]:
    """Every change of offset from 2024 to 2028, found with zoneinfo alone."""
    info = zone_info(zone)
    found: list[datetime] = []
    low, offset = BEGIN, BEGIN.astimezone(info).utcoffset()
    while low < END:
        high = low + timedelta(days=1)
        then = high.astimezone(info).utcoffset()
        if then != offset:
            early, late = low, high
            while late - early > MINUTE:
                middle = early + (late - early) // MINUTE // 2 * MINUTE
                same = middle.astimezone(info).utcoffset() == offset
                early, late = (middle, late) if same else (early, middle)
            found.append(late)
        low, offset = high, then
    return found


def compare(zone: str, expression: str, span: list[LocalMinute], draw: random.Random, seed: int) -> None:
    """Assert that next, previous and count give what the judge gives over a span."""
    where = f"seed {seed}, {zone}, {expression!r}"
    expected = Reference(expression).ticks(span)
    cron = compile_cron(expression, known_zone(zone))
    start, end = span[0].instant - MINUTE, span[-1].instant
    assert cron.count(start, end) == len(expected), where
    points = [draw.choice(span).instant + draw.choice((timedelta(0), timedelta(seconds=1))) for _ in range(8)]
    for at in [start, end, *points]:
        passed = bisect_right(expected, at)
        if passed < len(expected):
            assert cron.next(at) == expected[passed], f"{where}, next after {at}"
        else:
            following = cron.next(at)
            assert following is None or following > end, f"{where}, next after {at}"
        assert cron.previous(at, start) == (expected[passed - 1] if passed else None), f"{where}, previous of {at}"
        assert cron.count(start, at) == passed, f"{where}, count until {at}"
    for tick in expected if len(expected) <= 40 else draw.sample(expected, 40):
        assert cron.next(tick - MINUTE / 2) == tick, f"{where}, tick {tick}"
        assert cron.previous(tick, start) == tick, f"{where}, tick {tick}"


@pytest.mark.timeout(120 * len(SEEDS))
@pytest.mark.parametrize("group", range(GROUPS))
def test_every_change_of_every_zone(group: int) -> None:
    checked = 0
    for zone in ZONES[group::GROUPS]:
        found = changes(zone) or [utc(2024, 1, 2) + timedelta(days=random.Random(zone).randrange(1800))]
        for change in found:
            span = local_minutes(zone, change - timedelta(hours=20), 40 * 60)
            for seed in SEEDS:
                draw = random.Random(f"{seed} {zone} {change}")
                for _ in range(EXPRESSIONS_PER_CHANGE):
                    compare(zone, random_expression(draw), span, draw, seed)
                    checked += 1
    print(f"seeds {SEEDS}: {checked} expressions compared")  # noqa: T201


@pytest.mark.timeout(120 * len(SEEDS))
@pytest.mark.parametrize("zone", ["Pacific/Chatham", "Africa/Casablanca"])
def test_many_months(zone: str) -> None:
    span = local_minutes(zone, utc(2026, 12, 1), 200 * 1440)
    for seed in SEEDS:
        draw = random.Random(f"{seed} {zone}")
        for _ in range(8):
            compare(zone, random_expression(draw), span, draw, seed)


@pytest.mark.parametrize("names", [names for names in zones_by_rules().values() if len(names) > 1], ids=lambda n: n[0])
def test_links_are_the_zones_that_they_name(names: list[str]) -> None:
    expected = [compile_cron("30 2 * * *", known_zone(names[0])).next(change) for change in changes(names[0])[:4]]
    for name in names[1:]:
        cron = compile_cron("30 2 * * *", known_zone(name))
        assert [cron.next(change) for change in changes(names[0])[:4]] == expected


@pytest.mark.parametrize(
    ("cron", "zone", "change", "expected"),
    [
        ("30 2 * * *", "Europe/Paris", utc(2027, 3, 28, 1), {utc(2027, 3, 28, 1): ClockMark.MOVED}),
        ("0,30 2-3 * * *", "Europe/Paris", utc(2027, 3, 28, 1), {utc(2027, 3, 28, 1): ClockMark.MOVED}),
        ("30 2 * * *", "Europe/Paris", utc(2027, 10, 31, 1), {utc(2027, 10, 31, 0, 30): ClockMark.FIRST_PASS}),
        ("0 12 * * *", "Europe/Paris", utc(2027, 10, 31, 1), {}),
        (
            "*/30 2 * * *",
            "Europe/Paris",
            utc(2027, 10, 31, 1),
            {
                utc(2027, 10, 31, 0, 0): ClockMark.FIRST_PASS,
                utc(2027, 10, 31, 0, 30): ClockMark.FIRST_PASS,
                utc(2027, 10, 31, 1, 0): ClockMark.SECOND_PASS,
                utc(2027, 10, 31, 1, 30): ClockMark.SECOND_PASS,
            },
        ),
        ("0 0 * * *", "Africa/Cairo", utc(2027, 4, 29, 22), {utc(2027, 4, 29, 22): ClockMark.MOVED}),
        ("*/30 2 * * *", "Europe/Paris", utc(2027, 3, 28, 1), {}),
    ],
)
def test_marks(cron: str, zone: str, change: datetime, expected: dict[datetime, ClockMark]) -> None:
    ticks: Cron = compile_cron(cron, known_zone(zone))
    schedule = Schedule(document={}, ticks=ticks)
    assert dict(schedule.marks(change - timedelta(hours=20), 20)) == expected


def test_what_the_day_by_day_search_for_changes_takes_for_granted() -> None:
    """Since 2000 no two changes of a zone lie within six days, and all lie on a whole minute with a whole offset."""
    for data, names in zones_by_rules().items():
        instants, offsets = _table(data)
        since = [instant for instant in instants if instant >= utc(1999, 12, 1).timestamp()]
        assert all(later - earlier > 6 * 86400 for earlier, later in pairwise(since)), names
        assert all(instant % 60 == 0 for instant in since), names
        info = zone_info(names[0])
        for year in range(2000, 2040):
            for month in (1, 4, 7, 10):
                offset = datetime(year, month, 1, tzinfo=UTC).astimezone(info).utcoffset()
                assert offset is not None
                assert offset % MINUTE == timedelta(0), names
        assert offsets


def _table(data: bytes) -> tuple[list[int], list[int]]:
    """The transition instants and offsets of the 64-bit block of a TZif file (RFC 8536)."""
    header = struct.Struct(">4sc15x6l")
    isut, isstd, leaps, times, types, chars = header.unpack_from(data)[2:]
    second = header.size + times * 5 + types * 6 + chars + leaps * 8 + isstd + isut
    *_, times, types, _chars = header.unpack_from(data, second)
    at = second + header.size
    instants = list(struct.unpack_from(f">{times}q", data, at))
    offsets = [struct.unpack_from(">lBB", data, at + times * 9 + n * 6)[0] for n in range(types)]
    return instants, offsets
