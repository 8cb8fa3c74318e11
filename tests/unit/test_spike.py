"""When a spike clears, and how the seconds before it are kept. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ringcron.store.bounds import Bounds
from ringcron.store.lag import Lag, SlotLag
from ringcron.store.snapshot import PACE_SECONDS, Pace, Snapshot, continued, span_to_count
from ringcron_api.dashboard.spike import mean_run_seconds, outlook_of, scale_top, workers_for

NOW = datetime(2027, 1, 1, 13, tzinfo=UTC)
SECOND = int(NOW.timestamp())


def pace(started: int, running: int, seconds: int = 60) -> Pace:
    return Pace(until=NOW, due=(0,) * seconds, running=(running,) * seconds, started=(started,) * seconds)


def snapshot(due: int = 0, **columns: Any) -> Snapshot:
    slots = (SlotLag(handler="log", slot=1, due=due, lag_seconds=1.0),) if due else ()
    values: dict[str, Any] = {
        "taken_at": NOW,
        "age_seconds": 0.0,
        "lag": Lag(taken_at=NOW, slots=slots),
        "pace": pace(4, 20),
    }
    return Snapshot(**(values | columns))


def test_the_mean_is_what_runs_over_what_starts() -> None:
    assert mean_run_seconds(pace(4, 20)) == 5.0
    assert mean_run_seconds(pace(0, 20)) is None
    unseen = Pace(until=NOW, due=(None, 1), running=(None, 30), started=(1000, 6))
    assert mean_run_seconds(unseen) == 5.0


def test_the_readme_s_spike() -> None:
    """2,000 jobs of 5 s, 20 workers with one place each: the last starts about 500 s late."""
    outlook = outlook_of({60: 2000}, snapshot(), capacities=[1] * 20)
    assert outlook.peak is not None
    assert (outlook.peak.in_seconds, outlook.peak.due) == (60, 2000)
    assert outlook.peak.late_seconds == pytest.approx(500)
    assert outlook.peak.clears_in_seconds == pytest.approx(560)
    assert outlook.workers_for_target == 334  # 10,000 worker-seconds in 30 s


def test_what_is_due_now_has_its_turn_first() -> None:
    outlook = outlook_of({1: 10}, snapshot(due=100), capacities=[10])
    assert outlook.clears_in_seconds == pytest.approx(50)
    assert outlook.peak is not None
    assert outlook.peak.late_seconds == pytest.approx((100 + 10 - 2) / 2)


def test_nothing_is_foretold_where_nobody_knows_or_runs() -> None:
    assert outlook_of({60: 2000}, snapshot(pace=pace(0, 0)), capacities=[1]).peak is None
    nobody = outlook_of({60: 2000}, snapshot(), capacities=[])
    assert (nobody.peak, nobody.clears_in_seconds, nobody.workers_for_target) == (None, None, None)
    assert workers_for({1: 10**9}, 0, 0.001, 30.0) is None


def test_the_ten_busiest_seconds() -> None:
    outlook = outlook_of({second: second % 20 for second in range(1, 100)}, snapshot(), capacities=[1])
    assert outlook.busiest == tuple((second, due) for due in (19, 18) for second in range(due, 100, 20))


@pytest.mark.parametrize(
    ("values", "top"), [([], 4), ([4], 4), ([5], 5), ([6], 10), ([11], 20), ([21], 50), ([51], 100), ([1873], 2000)]
)
def test_a_chart_ends_at_a_round_number(values: list[float], top: int) -> None:
    assert scale_top(values) == top


def test_seconds_are_counted_once_and_kept_for_ten_minutes() -> None:
    span = span_to_count(None, NOW + timedelta(seconds=0.7))
    assert span == Bounds(NOW - timedelta(seconds=PACE_SECONDS), NOW)
    first = continued(None, span, {SECOND - 1: 7}, due=3, running=2)
    assert (len(first.started), first.started[-1], first.due[-1], first.due[-2]) == (PACE_SECONDS, 7, 3, None)
    # Within the half second that commits may take, nothing new can be said.
    assert span_to_count(first, NOW + timedelta(seconds=1.4)) == Bounds(NOW, NOW)
    assert continued(first, Bounds(NOW, NOW), {}, due=9, running=9) == first
    span = span_to_count(first, NOW + timedelta(seconds=3.6))
    assert span == Bounds(NOW, NOW + timedelta(seconds=3))
    then = continued(first, span, {SECOND + 1: 5}, due=1, running=0)
    assert (then.started[-4:], then.due[-4:], then.running[-1]) == ((7, 0, 5, 0), (3, 1, 1, 1), 0)
    assert len(then.started) == PACE_SECONDS
    later = continued(then, Bounds(then.until, then.until + timedelta(seconds=5)), {}, due=2, running=0)
    assert later.due[-6:] == (1, None, None, None, None, 2)  # nobody looked meanwhile


def test_a_clock_that_went_back_counts_nothing_twice() -> None:
    before = pace(1, 1)
    span = span_to_count(before, NOW - timedelta(seconds=30))
    assert span.from_at == span.until_at
    assert continued(before, span, {}, due=0, running=0) == Pace(until=span.from_at)  # what was kept lies ahead


def test_after_a_long_pause_the_rest_is_begun_anew() -> None:
    span = span_to_count(pace(1, 1), NOW + timedelta(hours=2))
    assert span.until_at - span.from_at == timedelta(seconds=PACE_SECONDS)
    then = continued(pace(1, 1), span, {}, due=0, running=0)
    assert (len(then.started), sum(then.started)) == (PACE_SECONDS, 0)
