"""The bounds of peeks and claims cover whatever can be due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ringcron.models import EARLIEST
from ringcron.store.bounds import behind, near


@pytest.mark.parametrize("minutes", [0, 1, 19, 20, 59, 60 * 23 + 50])
def test_bounds_reach_more_than_an_hour_ahead_and_a_day_back(minutes: int) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    assert near(now).until_at - now > timedelta(hours=1)
    assert now - near(now).from_at >= timedelta(days=1)


def test_behind_has_all_of_the_past_and_as_much_ahead_as_near() -> None:
    now = datetime(2026, 3, 1, 0, 10, tzinfo=UTC)
    assert behind(now).from_at == EARLIEST
    assert behind(now).until_at == near(now).until_at
