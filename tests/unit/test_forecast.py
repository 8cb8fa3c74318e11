"""What is coming, when it clears, and what capacity it needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.forecast import MOST_TICKS, Coming, Stream, desired_capacity, expand, predict
from ringcron.schedule import Schedule, parse_schedule

START = datetime(2027, 3, 1, 8, 59, 30, tzinfo=UTC)
NINE = START + timedelta(seconds=30)


def coming(*work: float) -> Coming:
    return Coming(start=START, due=[round(one) for one in work], work=work)


def stream(
    schedule: str | dict[str, str] | None, *, first: datetime = NINE, jobs: int = 1, handler: str = "a"
) -> Stream:
    return Stream(handler=handler, schedule=None if schedule is None else parse(schedule), first=first, jobs=jobs)


def parse(document: str | dict[str, str]) -> Schedule:
    return parse_schedule(document, created_at=datetime(2027, 1, 1, tzinfo=UTC))


def busy(found: Coming) -> dict[int, int]:
    return {second: due for second, due in enumerate(found.due) if due}


def test_one_offs_and_the_ticks_that_follow_the_rows() -> None:
    streams = [
        stream(None, jobs=2000),
        stream("* * * * *", jobs=3),
        stream({"every": "PT40S", "anchor": "2027-03-01T08:59:40Z"}, first=START + timedelta(seconds=10), handler="b"),
    ]
    found = expand(streams, start=START, seconds=120, mean_seconds={"a": 5.0, "b": 0.5})
    assert busy(found) == {10: 1, 30: 2003, 50: 1, 90: 4}
    assert found.work[30] == 2003 * 5.0
    assert found.work[10] == 0.5
    assert found.complete


def test_jobs_of_one_schedule_that_are_next_due_at_different_ticks() -> None:
    minutely = parse("* * * * *")
    streams = [
        Stream(handler="a", schedule=minutely, first=NINE + timedelta(minutes=2), jobs=10),
        Stream(handler="a", schedule=minutely, first=NINE, jobs=1),
    ]
    found = expand(streams, start=START, seconds=240, mean_seconds={})
    assert busy(found) == {30: 1, 90: 1, 150: 11, 210: 11}


def test_a_row_with_jitter_and_one_within_its_second_are_counted_once() -> None:
    half_past = {"every": "PT60S", "anchor": "2027-03-01T09:00:00.5Z"}
    found = expand(
        [stream(half_past), stream("* * * * *", first=NINE + timedelta(seconds=7))],
        start=START,
        seconds=60,
        mean_seconds={},
    )
    assert busy(found) == {30: 1, 37: 1}


def test_the_end_of_a_schedule_is_the_end() -> None:
    document = {"cron": "* * * * *", "timezone": "UTC", "endAt": "2027-03-01T09:01:00Z"}
    assert busy(expand([stream(document)], start=START, seconds=600, mean_seconds={})) == {30: 1, 90: 1}


def test_more_ticks_than_are_counted_are_said() -> None:
    second = [stream({"every": "PT1S", "anchor": f"2027-03-01T08:00:00.{n:06}Z"}, first=START) for n in range(3)]
    seconds = MOST_TICKS // 2
    assert not expand(second, start=START, seconds=seconds, mean_seconds={}).complete
    assert expand(second[:1], start=START, seconds=seconds, mean_seconds={}).complete


def test_the_spike_of_the_brief() -> None:
    """2,000 jobs of 5 s: twenty workers clear it in 500 s, two hundred in 50."""
    found = coming(*([0.0] * 10), 10_000.0, *([0.0] * 600))
    twenty = predict(found, backlog_work=0, capacity=20)
    assert (twenty.peak_second, twenty.worst_delay_seconds, twenty.clears_after_seconds) == (10, 500.0, 510)
    two_hundred = predict(found, backlog_work=0, capacity=200)
    assert (two_hundred.worst_delay_seconds, two_hundred.clears_after_seconds) == (50.0, 60)


def test_what_waits_now_counts() -> None:
    found = predict(coming(*([0.0] * 100)), backlog_work=300, capacity=10)
    assert (found.worst_delay_seconds, found.clears_after_seconds, found.peak_second) == (30.0, 30, None)


def test_nothing_waits_and_nothing_comes() -> None:
    found = predict(coming(0.0, 0.0), backlog_work=0, capacity=0)
    assert (found.worst_delay_seconds, found.clears_after_seconds) == (0.0, 0)


@pytest.mark.parametrize("capacity", [0, 1])
def test_what_does_not_clear_within_the_horizon(capacity: int) -> None:
    found = predict(coming(50.0, *([1.0] * 30)), backlog_work=0, capacity=capacity)
    assert found.clears_after_seconds is None
    assert found.worst_delay_seconds == (None if capacity == 0 else 50.0)


def test_capacity_is_there_before_the_spike() -> None:
    spike_in_two_minutes = coming(*([0.0] * 120), 10_000.0, *([0.0] * 200))
    assert desired_capacity(spike_in_two_minutes, backlog_work=0, lead_seconds=60, clear_seconds=50) == 0
    assert desired_capacity(spike_in_two_minutes, backlog_work=0, lead_seconds=120, clear_seconds=50) == 200
    assert desired_capacity(spike_in_two_minutes, backlog_work=100, lead_seconds=60, clear_seconds=50) == 2


@given(
    work=st.lists(st.floats(0, 500), min_size=60, max_size=60),
    backlog=st.floats(0, 500),
    lead=st.integers(1, 40),
    clear=st.integers(1, 20),
)
def test_no_window_is_missed(work: list[float], backlog: float, lead: int, clear: int) -> None:
    """The sliding sum against the plain one."""
    needs = [sum(work[begin : begin + clear]) + (backlog if begin == 0 else 0) for begin in range(lead + 1)]
    found = desired_capacity(coming(*work), backlog_work=backlog, lead_seconds=lead, clear_seconds=clear)
    assert max(needs) / clear - 1e-3 <= found < max(needs) / clear + 1 + 1e-3
