"""Overlap, catch-up, jitter and exhaustion: contract.md §4 with real programs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import psycopg
import pytest

from tests.acceptance.conftest import Cluster
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

SECOND = timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def missed(cluster: Cluster, job_id: str, *, minutes_ago: int) -> datetime:
    """As if no worker had lived since an hourly job's tick, so many minutes ago: that tick."""
    with psycopg.connect(cluster.database_url, autocommit=True) as connection:
        row = connection.execute(
            """
            with since as (select date_trunc('second', now() - %(ago)s) as tick)
            update jobs
            set schedule = jsonb_build_object('every', 'PT1H', 'anchor',
                    to_char(tick at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
                next_run_at = tick, scheduled_for = tick, decided_until = tick - interval '1 second'
            from since
            where id = %(id)s
            returning scheduled_for
            """,
            {"id": job_id, "ago": timedelta(minutes=minutes_ago)},
        ).fetchone()
    assert row is not None
    tick: datetime = row[0]
    return tick


def test_overlap_buffer_one_runs_the_first_tick_that_passed(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(schedule={"every": "PT1S"}, handler="slow", payload={"seconds": 2.4}, overlap="buffer_one")
    first, second = cluster.ended_runs(job["jobId"], 2)
    assert (first["cause"], second["cause"]) == ("schedule", "buffer")
    assert at(second["scheduledFor"]) - at(first["scheduledFor"]) == SECOND
    skip = cluster.skips(job["jobId"])[-1]
    assert (skip["reason"], at(skip["from"])) == ("overlap", at(first["scheduledFor"]) + 2 * SECOND)


def test_overlap_buffer_all_runs_every_tick_in_order(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(
        schedule={"every": "PT1S", "maxRuns": 4}, handler="slow", payload={"seconds": 1.4}, overlap="buffer_all"
    )
    cluster.until_state(job["jobId"], "done")
    runs = cluster.ended_runs(job["jobId"], 4)
    ticks = [at(run["scheduledFor"]) for run in runs]
    assert [later - earlier for earlier, later in pairwise(ticks)] == [SECOND] * 3
    starts = [at(run["startedAt"]) for run in runs]
    assert all(later >= at(run["finishedAt"]) for run, later in zip(runs, starts[1:], strict=False))
    assert len(cluster.witness("begin", job["jobId"])) == 4


def test_overlap_cancel_other_stops_the_attempt_at_the_tick_and_runs_the_tick(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(
        schedule={"every": "PT2S", "maxRuns": 3}, handler="slow", payload={"seconds": 60}, overlap="cancel_other"
    )
    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) == 3, seconds=20)
    runs = cluster.ended_runs(job["jobId"], 2)
    assert [run["outcome"] for run in runs] == ["cancelled", "cancelled"]
    ticks = [at(line["scheduled_for"]) for line in cluster.witness("begin", job["jobId"])]
    assert [later - earlier for earlier, later in pairwise(ticks)] == [2 * SECOND] * 2
    for run, tick in zip(runs, ticks[1:], strict=False):
        assert at(run["finishedAt"]) >= tick
        assert at(run["finishedAt"]) - tick < 3 * SECOND


@pytest.mark.parametrize(
    ("catchup", "minutes_ago", "hours", "skipped"),
    [
        ("all", 150, [0, 1, 2], []),
        ("latest", 150, [2], [(0, 1, 2)]),
        ("none", 119, [], [(0, 1, 2)]),
        ("none", 0, [0], []),
    ],
)
def test_catchup(
    cluster: Cluster, catchup: str, minutes_ago: int, hours: list[int], skipped: list[tuple[int, int, int]]
) -> None:
    """No worker was there: the hours (after the first tick) that run, and the skips (from, to, count) beside them."""
    job = cluster.create(schedule={"every": "PT1H"}, handler="quick", catchup=catchup)
    tick = missed(cluster, job["jobId"], minutes_ago=minutes_ago)
    cluster.worker()
    until_sync(lambda: at(cluster.job(job["jobId"])["scheduledFor"]) > datetime.now(UTC), seconds=20)
    hour = timedelta(hours=1)
    runs = cluster.ended_runs(job["jobId"], len(hours))
    assert [at(run["scheduledFor"]) for run in runs] == [tick + n * hour for n in hours]
    found = [(at(skip["from"]), at(skip["to"]), skip["count"], skip["reason"]) for skip in cluster.skips(job["jobId"])]
    assert found == [(tick + first * hour, tick + last * hour, count, "missed") for first, last, count in skipped]


def test_jitter_is_one_offset_and_leaves_the_tick_its_name(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(schedule={"every": "PT2S"}, handler="quick", jitter="PT2S")
    offset = at(job["nextRunAt"]) - at(job["scheduledFor"])
    assert timedelta(0) <= offset < 2 * SECOND
    runs = cluster.ended_runs(job["jobId"], 3)
    ticks = [at(run["scheduledFor"]) for run in runs]
    assert [later - earlier for earlier, later in pairwise(ticks)] == [2 * SECOND] * 2
    assert all(at(run["startedAt"]) >= at(run["scheduledFor"]) + offset for run in runs)


def test_an_exhausted_recurring_job_goes_on_or_is_dead_as_it_says(cluster: Cluster) -> None:
    cluster.worker()
    body = {"schedule": {"every": "PT1S"}, "handler": "failing", "retry": {"maxAttempts": 1}}
    goes_on = cluster.create(**body)
    dies = cluster.create(**body, onExhausted="dead")
    assert len(cluster.ended_runs(goes_on["jobId"], 2)) >= 2
    assert cluster.until_state(dies["jobId"], "dead")["deadReason"].startswith("failed at attempt 1 of 1: boom")
    assert len(cluster.runs(dies["jobId"])) == 1
