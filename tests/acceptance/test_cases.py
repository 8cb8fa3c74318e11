"""Entries of cases.md that need whole programs and stand in no sentence of the brief."""

from __future__ import annotations

import itertools
import time
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.conftest import FOLDER, LEASE_SECONDS, Cluster, instant
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

SECOND = timedelta(seconds=1)
CLOCK_AHEAD = """
import os, time
from datetime import timedelta
from ringcron import clock

wall, seconds = clock.SystemClock.wall, time.time
ahead = lambda: 7200 if os.path.exists(os.environ["CLOCK_AHEAD"]) else 0
clock.SystemClock.wall = lambda self: wall(self) + timedelta(seconds=ahead())
time.time = lambda: seconds() + ahead()
"""
"""A machine whose wall clock is two hours ahead while a file is there."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a28_a_clock_that_was_ahead_and_is_set_right_makes_nothing_early_or_silent(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A28: due time is the database's: no run before its instant while the clock is ahead, no pause afterwards."""
    (tmp_path / "sitecustomize.py").write_text(CLOCK_AHEAD)
    ahead = tmp_path / "ahead"
    ahead.touch()
    job = cluster.create(schedule={"every": "PT1S"}, handler="quick")
    in_an_hour = cluster.create(runAt=instant(3600), handler="quick")
    cluster.worker(environment={"PYTHONPATH": f"{tmp_path}:{FOLDER}", "CLOCK_AHEAD": str(ahead)})

    before = cluster.ended_runs(job["jobId"], 3)
    assert cluster.witness("begin", job["jobId"])[0]["at"] > time.time() + 7000
    ahead.unlink()
    runs = cluster.ended_runs(job["jobId"], len(before) + 4)

    assert cluster.witness("begin", job["jobId"])[-1]["at"] < time.time() + 60
    ticks = [at(run["scheduledFor"]) for run in runs]
    assert all(later - earlier == SECOND for earlier, later in itertools.pairwise(ticks[1:]))  # the first may be missed
    assert all(at(run["startedAt"]) >= at(run["scheduledFor"]) for run in runs)
    assert cluster.witness(job_id=in_an_hour["jobId"]) == []


def test_a35_a_worker_that_comes_back_under_its_name_takes_its_job_over_after_the_lease(cluster: Cluster) -> None:
    """A35: killed mid-run and started again at once under the same name: not never, and not before its lease ends."""
    doomed = cluster.worker("same")
    job = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": LEASE_SECONDS})
    first = cluster.begun(job["jobId"])
    doomed.kill()
    again = cluster.worker("same")

    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) == 2, seconds=3 * (LEASE_SECONDS + 1) + 10)
    lost, taken_over = cluster.ended_runs(job["jobId"], 2)

    assert cluster.witness("begin", job["jobId"])[1]["at"] - first["at"] >= LEASE_SECONDS * 0.9
    assert [(lost["outcome"], lost["attempt"]), (taken_over["outcome"], taken_over["attempt"])] == [
        ("lost", 1),
        ("succeeded", 2),
    ]
    names = [run["workerId"].split(".")[0] for run in (lost, taken_over)]
    assert names == ["same", "same"]
    assert lost["workerId"] != taken_over["workerId"]
    assert again.running


def test_a11_a61_rows_that_cannot_be_evaluated_harm_no_other(cluster: Cluster) -> None:
    """A11, A61: put in by hand, unparsable or never firing: dead with its reason; a hundred others are on time."""
    cluster.worker()
    never = '{"cron": "* 2 * 3 SUN#2", "timezone": "America/New_York"}'
    bad = {'{"cron": "0 0 31 2 *", "timezone": "Nowhere/At_All"}': "cannot be decoded", never: "cannot be evaluated"}
    jobs = [cluster.create(schedule="0 0 1 1 *", handler="quick")["jobId"] for _ in bad]
    when = instant(3.0)
    status, answer = cluster.api.call("POST", "/jobs/batch", {"jobs": [{"runAt": when, "handler": "quick"}] * 100})
    assert status == 207
    with psycopg.connect(cluster.database_url, autocommit=True) as connection:
        for job, schedule in zip(jobs, bad, strict=True):
            connection.execute(
                "update jobs set schedule = %s, next_run_at = now() - interval '1 hour', "
                "scheduled_for = now() - interval '1 hour', decided_until = now() - interval '2 hours' where id = %s",
                (schedule, job),
            )

    for job, reason in zip(jobs, bad.values(), strict=True):
        assert reason in cluster.until_state(job, "dead")["deadReason"]
    for result in answer["results"]:
        (run,) = cluster.ended_runs(result["jobId"], 1)
        assert run["outcome"] == "succeeded"
        assert timedelta(0) <= at(run["startedAt"]) - at(when) < 3 * SECOND
