"""Interval schedules: exact, without drift, from an anchor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.errors import NeverFires, ScheduleError
from ringcron.every import Every
from ringcron.schedule import Schedule, parse_schedule, schedule_faults
from tests.support.brute_force import utc

CREATED = datetime(2026, 12, 1, 10, 0, 0, 123456, tzinfo=UTC)


def test_the_anchor_defaults_to_creation_and_the_first_tick_comes_strictly_after_it() -> None:
    schedule = parse_schedule({"every": "PT15M"}, created_at=CREATED)
    assert schedule.document == {"every": "PT15M", "anchor": "2026-12-01T10:00:00.123456Z"}
    assert schedule.upcoming(CREATED, 2) == [CREATED + timedelta(minutes=15), CREATED + timedelta(minutes=30)]
    assert parse_schedule(schedule.document).next_after(CREATED) == CREATED + timedelta(minutes=15)
    assert schedule.timezone is None
    assert schedule.marks(CREATED, 10) == []


def test_a_stored_document_needs_no_instant_of_creation_but_a_new_one_does() -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule({"every": "PT15M"})
    assert (refusal.value.pointer, refusal.value.code) == ("/anchor", "required")


def test_no_drift_in_a_million_ticks() -> None:
    schedule = parse_schedule({"every": "PT1.000001S", "anchor": "2026-12-01T00:00:00Z"})
    far = utc(2026, 12, 1) + 10**6 * timedelta(seconds=1, microseconds=1)
    assert schedule.next_after(far - timedelta(microseconds=1)) == far
    assert schedule.count(utc(2026, 12, 1), far) == 10**6


def test_a44_a_hundred_runs_of_ten_seconds_end_at_990() -> None:
    schedule = parse_schedule({"every": "PT10S"}, created_at=CREATED)
    ticks = schedule.upcoming(CREATED, 100)
    assert [tick - ticks[0] for tick in ticks] == [timedelta(seconds=10 * n) for n in range(100)]


def test_the_anchor_fixes_the_phase_in_both_directions_and_start_at_the_beginning() -> None:
    document = {"every": "P1D", "anchor": "2030-06-01T06:30:00Z"}
    assert parse_schedule(document, created_at=CREATED).next_after(CREATED) == utc(2026, 12, 2, 6, 30)
    later = parse_schedule({**document, "startAt": "2027-01-01T06:30:00Z"}, created_at=CREATED)
    assert later.next_after(CREATED) == utc(2027, 1, 1, 6, 30)


def test_start_and_end_are_included() -> None:
    document = {
        "every": "PT1H",
        "anchor": "2027-01-01T00:00:00Z",
        "startAt": "2027-01-01T02:00:00Z",
        "endAt": "2027-01-01T04:00:00Z",
        "maxRuns": 2,
    }
    schedule = parse_schedule(document, created_at=CREATED)
    assert schedule.document == document
    assert [tick.hour for tick in schedule.upcoming(CREATED, 9)] == [2, 3, 4]
    assert schedule.count(CREATED, utc(2028, 1, 1)) == 3
    assert schedule.latest(CREATED, utc(2028, 1, 1)) == utc(2027, 1, 1, 4)
    assert schedule.next_after(utc(2027, 1, 1, 4)) is None


@pytest.mark.parametrize(
    ("every", "normal"),
    [("PT1S", "PT1S"), ("PT3600S", "PT1H"), ("PT24H", "P1D"), ("P2W", "P14D"), ("PT1.5S", "PT1.5S")],
)
def test_normal_form(every: str, normal: str) -> None:
    assert parse_schedule({"every": every}, created_at=CREATED).document["every"] == normal


@pytest.mark.parametrize(
    ("document", "pointer", "code"),
    [
        ({"every": "PT0S"}, "/every", "out-of-range"),
        ({"every": "PT0.999999S"}, "/every", "out-of-range"),
        ({"every": "P1M"}, "/every", "invalid"),
        ({"every": "P1Y"}, "/every", "invalid"),
        ({"every": "15m"}, "/every", "invalid"),
        ({"every": 900}, "/every", "type"),
        ({"every": "PT1H", "anchor": "2027-01-01T00:00:00"}, "/anchor", "invalid"),
        ({"every": "PT1H", "anchor": "1999-12-31T23:59:59Z"}, "/anchor", "invalid"),
        ({"every": "PT1H", "anchor": 5}, "/anchor", "type"),
        ({"every": "PT1H", "endAt": "2026-12-01T10:30:00Z"}, "/endAt", "never-fires"),
    ],
)
def test_refusals(document: dict[str, Any], pointer: str, code: str) -> None:
    [fault] = schedule_faults(document, created_at=CREATED)
    assert (fault.pointer, fault.code) == (pointer, code)
    assert isinstance(fault, NeverFires) == (code == "never-fires")


_INSTANTS = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(8899, 1, 1)).map(  # noqa: DTZ001
    lambda naive: naive.replace(tzinfo=UTC)
)


@given(
    every=st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=36525)),
    anchor=_INSTANTS,
    after=_INSTANTS,
    span=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=300)),
)
def test_next_previous_and_count_agree(every: timedelta, anchor: datetime, after: datetime, span: timedelta) -> None:
    ticks = Every(every, anchor)
    until = after + span
    first = ticks.next(after)
    assert first is not None
    assert after < first <= after + every
    assert (first - anchor) % every == timedelta(0)
    assert ticks.next(first) == first + every
    assert ticks.previous(first, after) == first
    count = ticks.count(after, until)
    assert (count > 0) == (first <= until)
    last = ticks.previous(until, after)
    assert (last is None) == (count == 0)
    if last is not None:
        assert last == first + (count - 1) * every
        assert until - every < last <= until


def test_the_edges_of_time() -> None:
    schedule = parse_schedule({"every": "P36525D", "anchor": "8999-01-01T00:00:00Z"})
    assert schedule.next_after(utc(1, 1, 1)) is not None
    with pytest.raises(NeverFires):
        schedule.next_after(utc(8999, 6, 1))
    assert schedule.count(utc(1, 1, 1), utc(9999, 1, 1)) == 70


def test_a_tick_that_is_not_later_is_an_error_and_never_a_loop() -> None:
    class Stuck(Every):
        def next(self, after: datetime, years: int | None = None) -> datetime | None:
            return after

    schedule = Schedule(document={}, ticks=Stuck(timedelta(hours=1), CREATED))
    with pytest.raises(ScheduleError, match="is not later than"):
        schedule.next_after(CREATED)
