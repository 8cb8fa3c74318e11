"""The vectors of cron-cases.json and the cron entries A01 to A29 that need no servers."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ringcron.cron import enumerator
from ringcron.errors import NeverFires, ScheduleError
from ringcron.schedule import parse_schedule, schedule_faults
from tests.support.brute_force import Reference, local_minutes, utc

CASES = json.loads(Path(__file__).with_name("cron-cases.json").read_text())
CREATED = utc(2026, 12, 1)


FIRES = [
    pytest.param(case, id=f"{case['id']}-{n}-{case['cron'].replace(' ', '_')}-{case['timezone']}")
    for n, case in enumerate(CASES["fires"])
]


@pytest.mark.parametrize("case", FIRES)
def test_fires(case: dict[str, Any]) -> None:
    after = datetime.fromisoformat(case["after"])
    expected = [datetime.fromisoformat(text) for text in case["expect"]]
    schedule = parse_schedule({"cron": case["cron"], "timezone": case["timezone"]}, created_at=after)
    assert schedule.upcoming(after, len(expected)) == expected
    assert schedule.count(after, expected[-1]) == len(expected)
    backwards = []
    until = expected[-1]
    while (tick := schedule.latest(after, until)) is not None:
        backwards.append(tick)
        until = tick - timedelta(microseconds=1)
    assert backwards == expected[::-1]


@pytest.mark.parametrize("case", FIRES)
def test_the_brute_force_judge_agrees_with_the_vectors(case: dict[str, Any]) -> None:
    after = datetime.fromisoformat(case["after"])
    expected = [datetime.fromisoformat(text) for text in case["expect"]]
    minutes = (expected[-1] - after) // timedelta(minutes=1)
    if minutes > 200_000:
        expected, minutes = expected[:1], min(minutes, (expected[0] - after) // timedelta(minutes=1))
    span = local_minutes(case["timezone"], after + timedelta(minutes=1), minutes)
    assert Reference(case["cron"]).ticks(span) == expected


@pytest.mark.parametrize("cron", CASES["refused"])
def test_refused(cron: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule(cron, created_at=CREATED)
    assert refusal.value.pointer == "/cron"
    assert len(str(refusal.value)) > 20


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "* * 30 2 *", "0 0 31 2,4 *"])
def test_a10_a_date_that_cannot_come_is_refused_naming_the_fields(cron: str) -> None:
    began = time.perf_counter()
    with pytest.raises(NeverFires, match=r"day-of-month \(field 3\) .* does not come in month \(field 4\)"):
        parse_schedule(cron, created_at=CREATED)
    assert time.perf_counter() - began < 3 * 0.050


def test_a10_a_time_that_always_falls_in_the_gap_is_refused() -> None:
    # The second Sunday of March at 2 does not exist in New York, and a `*` expression is not moved.
    document = {"cron": "* 2 * 3 SUN#2", "timezone": "America/New_York"}
    began = time.perf_counter()
    with pytest.raises(NeverFires, match=r"no tick within eight years of .* in America/New_York"):
        parse_schedule(document, created_at=CREATED)
    assert time.perf_counter() - began < 3 * 0.050
    assert parse_schedule({**document, "timezone": "UTC"}, created_at=CREATED).next_after(CREATED) == utc(
        2027, 3, 14, 2
    )


def test_a11_a_stored_row_that_never_fires_says_so_at_its_first_evaluation() -> None:
    with pytest.raises(NeverFires):
        parse_schedule({"cron": "0 0 31 2 *", "timezone": "UTC"})
    stored = parse_schedule({"cron": "* 2 * 3 SUN#2", "timezone": "America/New_York"})
    with pytest.raises(NeverFires):
        stored.next_after(CREATED)
    assert stored.count(CREATED, CREATED + timedelta(days=3650)) == 0
    assert stored.latest(CREATED, CREATED + timedelta(days=3650)) is None


@pytest.mark.parametrize("cron", ["0 0 12 * * *", "* * */4 * * * *"])
def test_a17_six_and_seven_fields(cron: str) -> None:
    with pytest.raises(ScheduleError, match="write five fields"):
        parse_schedule(cron)


@pytest.mark.parametrize("cron", ["*/60 * * * *", "*/90 * * * *", "0-59/61 * * * *"])
def test_a18_a_step_past_the_field(cron: str) -> None:
    with pytest.raises(ScheduleError, match=r"(as large as|larger than) the field .*write `0 \* \* \* \*`"):
        parse_schedule(cron)


def test_a19_an_unknown_token_is_never_guessed_at() -> None:
    with pytest.raises(ScheduleError, match="`LW` in day-of-month"):
        parse_schedule("0 5 LW * *")


def test_a20_the_nearest_weekday() -> None:
    schedule = parse_schedule("0 9 15W * *", created_at=CREATED)
    assert schedule.upcoming(utc(2027, 5, 1), 4) == [
        utc(2027, 5, 14, 9),
        utc(2027, 6, 15, 9),
        utc(2027, 7, 15, 9),
        utc(2027, 8, 16, 9),
    ]


def test_a16_exactly_on_a_leap_day_the_next_is_four_years_on() -> None:
    assert parse_schedule("0 9 29 2 *").next_after(utc(2028, 2, 29, 9)) == utc(2032, 2, 29, 9)


def test_a24_every_minute_through_the_autumn_change() -> None:
    schedule = parse_schedule({"cron": "* * * * *", "timezone": "Europe/Paris"})
    ticks = schedule.upcoming(utc(2026, 10, 25, 0, 49), 20)
    assert ticks == [utc(2026, 10, 25, 0, 50) + timedelta(minutes=n) for n in range(20)]
    assert schedule.count(utc(2026, 10, 25, 0, 49), utc(2026, 10, 25, 1, 9)) == 20


def test_a25_exactly_one_tick_for_a_time_that_does_not_exist() -> None:
    schedule = parse_schedule({"cron": "0 2 * * *", "timezone": "America/New_York"})
    assert schedule.count(utc(2027, 3, 14, 6, 55), utc(2027, 3, 14, 8, 5)) == 1
    assert schedule.latest(utc(2027, 3, 14, 6, 55), utc(2027, 3, 14, 8, 5)) == utc(2027, 3, 14, 7)


def test_a26_the_zone_is_part_of_the_schedule() -> None:
    schedule = parse_schedule(parse_schedule({"cron": "0 19 * * *", "timezone": "Europe/Paris"}).document)
    assert schedule.next_after(utc(2026, 12, 1, 18)) == utc(2026, 12, 2, 18)


def test_a27_three_hours_of_minutes_are_counted_not_stepped() -> None:
    schedule = parse_schedule("* * * * *")
    stopped, started = datetime.fromisoformat("2026-12-01T00:00:10Z"), datetime.fromisoformat("2026-12-01T03:00:11Z")
    newest = schedule.latest(stopped, started)
    assert newest == utc(2026, 12, 1, 3)
    assert schedule.count(stopped, newest - timedelta(microseconds=1)) == 179


def test_every_refused_vector_reports_all_its_faults() -> None:
    assert len(schedule_faults("a b c d e")) == 5


def test_jobs_that_share_an_expression_ask_once() -> None:
    """Contract §7: results are cached by (expression, zone, after)."""
    document = {"cron": "17 3 * * 2", "timezone": "Europe/Lisbon"}
    first = parse_schedule(document, created_at=CREATED).next_after(CREATED)
    asked = enumerator._next.cache_info().misses
    assert parse_schedule(document, created_at=CREATED).next_after(CREATED) == first
    assert enumerator._next.cache_info().misses == asked
