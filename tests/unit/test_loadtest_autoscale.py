"""The simulated day: what each way to size the pool comes to."""

from __future__ import annotations

from loadtest.autoscale.day import DAY_SECONDS, Clusters, due_by_second
from loadtest.autoscale.policies import Ahead, Fixed, NextMinute, OnCpu, Policy
from loadtest.autoscale.pool import Day, Rules, simulate

NOON = 3600
SPIKE = [0] * NOON + [2000] + [0] * 1200


def spike_under(policy: Policy, **rules: int) -> Day:
    return simulate(policy, SPIKE, Rules(**rules))


def test_the_arithmetic_of_the_brief() -> None:
    assert spike_under(Fixed(20)).late_by_second[NOON] == 495
    assert spike_under(Fixed(200)).late_by_second[NOON] == 45


def test_every_job_runs_once_under_every_policy() -> None:
    due = due_by_second(Clusters(hour=300), seed=3)
    assert len(due) == DAY_SECONDS
    for policy in (Fixed(1), OnCpu(), NextMinute(), Ahead(90, 60)):
        assert len(simulate(policy, due, Rules()).lateness) == sum(due), policy.name


def test_the_pool_is_warm_before_the_spike_however_long_a_worker_takes() -> None:
    for start_seconds in (60, 150):
        late = spike_under(Ahead(start_seconds + 30, 60), start_seconds=start_seconds).late_by_second[NOON]
        assert late <= 60
    assert spike_under(NextMinute(), start_seconds=150).late_by_second[NOON] > 90
    assert spike_under(OnCpu(), start_seconds=150).late_by_second[NOON] > 300


def test_a_pool_that_is_sized_ahead_costs_less_than_one_that_is_always_large() -> None:
    assert spike_under(Ahead(90, 60)).worker_hours < spike_under(Fixed(200)).worker_hours / 5


def test_a_worker_that_is_no_longer_wanted_ends_its_run() -> None:
    day = spike_under(Ahead(90, 60), keep_seconds=0)
    assert len(day.lateness) == 2000
    assert day.ready[-1] == 2
