"""When a spike clears, and how the seconds before it are kept. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ringcron.store.bounds import Bounds
from ringcron.store.snapshot import PACE_SECONDS, Pace, continued, span_to_count
from ringcron_api.dashboard.spike import Spike, scale_top
from ringcron_api.dashboard.spike_words import sentence
from tests.support.spikes import spike_ahead

NOW = datetime(2027, 1, 1, 13, tzinfo=UTC)
SECOND = int(NOW.timestamp())


def pace(started: int, seconds: int = 60) -> Pace:
    return Pace(until=NOW, due=(0,) * seconds, started=(started,) * seconds)


def test_the_spike_of_the_readme() -> None:
    """2,000 jobs of 5 s on 20 places: the last starts about 500 s late."""
    spike = spike_ahead({60: 2000}, start=NOW)
    assert (spike.worst_due, spike.capacity_for_target) == (2000, 334)  # 10,000 seconds of work in 30 s
    assert spike.runs_per_second(20) == 4.0
    assert sentence(spike) == (
        "2,000 jobs become due at 13:01:00 UTC; with 20 at a time and 5.0 s a run the last starts about 8 min 20 s "
        "late, and it is over at 13:09:20. 334 at a time would make it 30 s."
    )


def test_what_is_wanted_is_what_the_autoscaler_is_told() -> None:
    assert spike_ahead({60: 2000}, start=NOW).desired_capacity == 167  # 10,000 seconds of work within a minute
    assert spike_ahead({600: 2000}, start=NOW).desired_capacity == 0  # not yet: a worker is ready in 3 min


def test_a_spike_is_named_by_its_busiest_second() -> None:
    spike = spike_ahead({40: 999, 60: 99, 61: 1321, 62: 120}, start=NOW, capacity=500)
    assert (spike.prediction.worst_second, spike.worst_second, spike.worst_due) == (62, 61, 1321)


def test_what_waits_now_may_be_the_worst() -> None:
    spike = spike_ahead({600: 2}, start=NOW, backlog=100)
    assert spike.worst_due == 0
    assert sentence(spike) == (
        "100 jobs are due now; with 20 at a time and 5.0 s a run the last starts about 25 s late, "
        "and it is over at 13:00:25."
    )


@pytest.mark.parametrize(
    ("spike", "said"),
    [
        (None, "What becomes due within the hour is not known: the forecast could not be made."),
        (spike_ahead({}, start=NOW), "Nothing becomes due within the hour."),
        (spike_ahead({9: 1}, start=NOW), "No spike within the hour. At most 1 job becomes due in one second"),
        (spike_ahead({9: 7}, start=NOW, measured=False), "7 jobs become due in one second, at 13:00:09 UTC. How late"),
        (spike_ahead({9: 7}, start=NOW, capacity=0), "No worker claims, so that nothing due would start."),
        (spike_ahead({9: 7}, start=NOW, complete=False), "More becomes due than was counted."),
        (spike_ahead({3590: 2000}, start=NOW), "it is not over within the hour"),
    ],
)
def test_what_is_not_known_is_said(spike: Spike | None, said: str) -> None:
    assert said in sentence(spike)


def test_the_ten_busiest_seconds() -> None:
    spike = spike_ahead({second: second % 20 for second in range(100)}, start=NOW)
    expected = tuple((spike.at(second), due) for due in (19, 18) for second in range(due, 100, 20))
    assert spike.busiest == expected


@pytest.mark.parametrize(
    ("values", "top"), [([], 4), ([4], 4), ([5], 5), ([6], 10), ([11], 20), ([21], 50), ([51], 100), ([1873], 2000)]
)
def test_a_chart_ends_at_a_round_number(values: list[float], top: int) -> None:
    assert scale_top(values) == top


def test_seconds_are_counted_once_and_kept_for_ten_minutes() -> None:
    span = span_to_count(None, NOW + timedelta(seconds=0.7))
    assert span == Bounds(NOW - timedelta(seconds=PACE_SECONDS), NOW)
    first = continued(None, span, {SECOND - 1: 7}, due=3)
    assert (len(first.started), first.started[-1], first.due[-1], first.due[-2]) == (PACE_SECONDS, 7, 3, None)
    # Within the half second that commits may take, nothing new can be said.
    assert span_to_count(first, NOW + timedelta(seconds=1.4)) == Bounds(NOW, NOW)
    assert continued(first, Bounds(NOW, NOW), {}, due=9) == first
    span = span_to_count(first, NOW + timedelta(seconds=3.6))
    assert span == Bounds(NOW, NOW + timedelta(seconds=3))
    then = continued(first, span, {SECOND + 1: 5}, due=1)
    assert (then.started[-4:], then.due[-4:]) == ((7, 0, 5, 0), (3, 1, 1, 1))
    assert len(then.started) == PACE_SECONDS
    later = continued(then, Bounds(then.until, then.until + timedelta(seconds=5)), {}, due=2)
    assert later.due[-6:] == (1, None, None, None, None, 2)  # nobody looked meanwhile


def test_a_clock_that_went_back_counts_nothing_twice() -> None:
    before = pace(1)
    span = span_to_count(before, NOW - timedelta(seconds=30))
    assert span.from_at == span.until_at
    assert continued(before, span, {}, due=0) == Pace(until=span.from_at)  # what was kept lies ahead


def test_after_a_long_pause_the_rest_is_begun_anew() -> None:
    span = span_to_count(pace(1), NOW + timedelta(hours=2))
    assert span.until_at - span.from_at == timedelta(seconds=PACE_SECONDS)
    then = continued(pace(1), span, {}, due=0)
    assert (len(then.started), sum(then.started)) == (PACE_SECONDS, 0)
