"""How long runs last lately."""

from __future__ import annotations

import pytest

from ringcron_shard_worker.durations import MEMORY, Durations


def test_the_mean_of_a_few_is_plain() -> None:
    durations = Durations()
    for seconds in (1.0, 2.0, 6.0):
        durations.observe("a", seconds)
    durations.observe("b", 0.5)
    assert durations.means() == {"a": 3.0, "b": 0.5}


def test_what_was_long_ago_fades() -> None:
    durations = Durations()
    for _ in range(1000):
        durations.observe("a", 60.0)
    for _ in range(10 * MEMORY):
        durations.observe("a", 1.0)
    assert durations.means()["a"] == pytest.approx(1.0, abs=0.01)
