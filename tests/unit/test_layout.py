"""The layout of a partitioned table: every change keeps all of time covered, and the changes come to an end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.store.layout import DAY, Partition, boundaries, midnight, next_close, next_split, partition_name

MONDAY = datetime(2026, 11, 30, tzinfo=UTC)


def fresh(first_day: datetime) -> list[Partition]:
    """What the first migration makes."""
    return [
        Partition(name="jobs_past", lower=None, upper=first_day),
        Partition(name="jobs_far", lower=first_day, upper=None),
    ]


def carve_all(partitions: list[Partition], now: datetime, days_ahead: int, months_ahead: int = 0) -> list[Partition]:
    while (split := next_split(partitions, now, days_ahead, months_ahead)) is not None:
        index = partitions.index(split.partition)
        partitions[index : index + 1] = [
            Partition(name=partition_name("jobs", bounds), lower=bounds[0], upper=bounds[1])
            for bounds in (split.earlier, split.later)
        ]
    return partitions


def close_all(partitions: list[Partition], until: datetime, kept: set[str] | None = None) -> list[Partition]:
    while (close := next_close(partitions, until, kept or set())) is not None:
        index = partitions.index(close.partition)
        bounds = close.before.lower, close.partition.upper
        before = Partition(name=partition_name("jobs", bounds), lower=bounds[0], upper=bounds[1])
        partitions[index - 1 : index + 1] = [before]
    return partitions


def names(partitions: list[Partition]) -> list[str]:
    return [partition.name.removeprefix("jobs_") for partition in partitions]


def test_today_and_the_days_ahead_are_carved_out_of_far_in_order() -> None:
    partitions = carve_all(fresh(MONDAY), MONDAY + timedelta(hours=7), 2)
    assert names(partitions) == ["past", "d20261130", "d20261201", "d20261202", "far"]
    assert next_split(partitions, MONDAY + timedelta(hours=23, minutes=59), 2, 0) is None


def test_at_midnight_one_more_day_is_carved() -> None:
    partitions = carve_all(fresh(MONDAY), MONDAY, 2)
    split = next_split(partitions, MONDAY + DAY, 2, 0)
    assert split is not None
    assert (split.partition.name, split.at) == ("jobs_far", MONDAY + 4 * DAY)
    assert split.earlier == (MONDAY + 3 * DAY, MONDAY + 4 * DAY)
    assert split.later == (MONDAY + 4 * DAY, None)


def test_months_lie_between_the_days_and_far_and_keep_their_name_while_they_shrink() -> None:
    partitions = carve_all(fresh(MONDAY), MONDAY, 1, 2)
    assert names(partitions) == ["past", "d20261130", "d20261201", "m202612", "m202701", "m202702", "far"]
    assert partitions[-1].lower == datetime(2027, 3, 1, tzinfo=UTC)
    carve_all(partitions, MONDAY + DAY, 1, 2)
    assert names(partitions)[2:5] == ["d20261201", "d20261202", "m202612"]
    assert next_split(partitions, MONDAY + DAY, 1, 2) is None
    carve_all(partitions, MONDAY + 29 * DAY, 1, 2)
    assert names(partitions)[-6:] == ["d20261229", "d20261230", "d20261231", "m202701", "m202702", "far"]
    carve_all(partitions, MONDAY + 30 * DAY, 1, 2)
    assert names(partitions)[-6:] == ["d20261230", "d20261231", "m202701", "m202702", "m202703", "far"]


def test_days_that_passed_while_nobody_carved_stay_in_one_partition() -> None:
    partitions = carve_all(fresh(MONDAY), MONDAY, 1)
    carve_all(partitions, MONDAY + 40 * DAY, 1)
    assert names(partitions) == ["past", "d20261130", "d20261201", "d20261202", "d20270109", "d20270110", "far"]


def test_a_clock_that_was_set_back_is_served_too() -> None:
    partitions = carve_all(fresh(MONDAY), MONDAY - 2 * DAY, 1)
    assert names(partitions) == ["past", "d20261128", "d20261129", "far"]


def test_an_old_day_is_closed_once_all_of_it_is_old_and_never_the_last_or_the_first() -> None:
    partitions = carve_all(fresh(MONDAY), MONDAY, 2)
    assert next_close(partitions, MONDAY + DAY - timedelta(microseconds=1)) is None
    assert names(close_all(partitions, MONDAY + DAY)) == ["past", "d20261201", "d20261202", "far"]
    assert partitions[0].upper == MONDAY + DAY
    assert names(close_all(partitions, MONDAY + 9 * DAY)) == ["past", "far"]


def test_a_day_that_must_stay_takes_over_the_time_of_the_next_one() -> None:
    partitions = close_all(carve_all(fresh(MONDAY), MONDAY, 2), MONDAY + 9 * DAY, {"jobs_d20261130"})
    assert names(partitions) == ["past", "d20261130", "far"]
    assert partitions[1].upper == MONDAY + 3 * DAY


def test_midnight_is_that_of_utc() -> None:
    kolkata = datetime.fromisoformat("2026-12-01T03:00:00+05:30")
    assert midnight(kolkata) == MONDAY


@given(
    starts=st.integers(0, 30),
    steps=st.lists(st.tuples(st.integers(-3, 40), st.integers(0, 20), st.booleans()), max_size=12),
    months=st.sampled_from((0, 1, 12)),
)
@pytest.mark.timeout(60)
def test_all_of_time_is_covered_after_any_history(starts: int, steps: list[tuple[int, int, bool]], months: int) -> None:
    partitions = fresh(MONDAY + starts * DAY)
    now = MONDAY + starts * DAY
    for passed, keep, pinned in steps:
        now += passed * DAY
        carve_all(partitions, now, 14, months)
        close_all(partitions, now - keep * DAY, {partitions[1].name} if pinned else None)
        assert partitions[0].lower is None
        assert partitions[-1].upper is None
        assert all(left.upper == right.lower for left, right in pairwise(partitions))
        assert len(set(names(partitions))) == len(partitions)
        assert all(at in {p.lower for p in partitions} for at in boundaries(now, 14, months)[1:])
        for day in range(15):
            owner = [p for p in partitions if p.lower == now + day * DAY and p.upper == now + (day + 1) * DAY]
            assert len(owner) == 1
