"""What the load test holds its measurements against: the brief's arithmetic, and lag worked out from claims."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from loadtest.jobs import DueJob
from loadtest.outcome import number
from loadtest.shards import lag_from_claims
from loadtest.spike import Ideal

T = datetime(2027, 1, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("places", "seconds", "last_start"), [(20, 500.0, 495.0), (200, 50.0, 45.0), (19, 530.0, 525.0), (4000, 5.0, 0.0)]
)
def test_a_spike_is_cleared_in_rounds(places: int, seconds: float, last_start: float) -> None:
    ideal = Ideal(jobs=2000, job_seconds=5.0, places=places)
    assert (ideal.seconds, ideal.last_start) == (seconds, last_start)
    series = ideal.series()
    assert series is not None
    assert series.points[-1] == (last_start, 2000.0)


def test_a_slow_worker_counts_for_a_part() -> None:
    assert Ideal(jobs=1910, job_seconds=5.0, places=19.1).seconds == pytest.approx(500)


def test_jobs_that_take_no_time_have_no_arithmetic() -> None:
    ideal = Ideal(jobs=2000, job_seconds=0.0, places=4)
    assert (ideal.seconds, ideal.rate, ideal.series()) == (0.0, None, None)


def test_lag_is_that_of_the_oldest_job_that_nobody_has_claimed() -> None:
    jobs = [DueJob(UUID(int=1), 5, T), DueJob(UUID(int=2), 6, T), DueJob(UUID(int=3), 3000, T)]
    origin = T.timestamp()
    claimed_at = {UUID(int=1): origin + 0.1, UUID(int=2): origin + 0.5, UUID(int=3): origin + 0.02}
    owners = {"worker-10": [(2048, 4095)], "worker-9": [(0, 2047)]}
    lag = lag_from_claims(jobs, claimed_at, owners, origin=origin, until=origin + 0.5)
    assert lag is not None
    assert lag.rows == ["worker-9", "worker-10"]
    slow, quick = lag.cells
    assert len(slow) == len(lag.columns) - 1
    assert slow[0] == pytest.approx(0.0025, abs=1e-5)
    assert [cell for cell in slow if cell is not None][-1] == pytest.approx(0.5, abs=0.006)
    assert [cell is not None for cell in quick].count(True) == 4
    assert quick[4:] == [None] * (len(quick) - 4)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3.0, "3"), (0.0824, "0.082"), (1.234, "1.23"), (12.34, "12.3"), (495.4, "495"), (18_600.4, "18,600")],
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert number(value) == text
