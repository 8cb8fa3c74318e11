"""The life of a job as its owner sees it: contract.md §5 with real programs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.acceptance.conftest import Cluster, instant
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

SECOND = timedelta(seconds=1)
FAR_POLL = 60.0
"""A worker that looks so seldom starts what is due at once only if it is told."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_job_that_is_due_at_once_starts_without_waiting_for_the_poll(cluster: Cluster) -> None:
    """The bell: an idle worker that looks once a minute."""
    cluster.worker(poll_seconds=FAR_POLL)
    first = cluster.create(runAt=instant(0), handler="quick")
    cluster.begun(first["jobId"])  # it is up, and asleep again
    job = cluster.create(runAt=instant(0), handler="quick")
    cluster.begun(job["jobId"], seconds=3.0)
    later = cluster.create(runAt=instant(3600), handler="quick")
    cluster.post(f"/jobs/{later['jobId']}/trigger")
    cluster.begun(later["jobId"], seconds=3.0)


def test_a_paused_job_rests_and_goes_on_at_a_tick_with_one_skip_for_what_passed(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(schedule={"every": "PT1S"}, handler="quick")
    cluster.ended_runs(job["jobId"], 1)
    status, _ = cluster.api.call("PATCH", f"/jobs/{job['jobId']}", {"paused": True})
    assert status in (200, 202)
    paused = cluster.until_state(job["jobId"], "paused")
    assert (paused["pausedBy"], paused["nextRunAt"]) == ("anonymous", None)
    ran = len(cluster.witness("begin", job["jobId"]))
    clock = cluster.create(runAt=instant(3.5), handler="quick")
    cluster.ended_runs(clock["jobId"], 1)
    assert len(cluster.witness("begin", job["jobId"])) == ran

    resumed = cluster.patch(job["jobId"], {"paused": False})

    assert resumed["state"] == "due"
    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) > ran, seconds=20)
    (skip,) = [skip for skip in cluster.skips(job["jobId"]) if skip["reason"] == "paused"]
    before, after = cluster.witness("begin", job["jobId"])[ran - 1 : ran + 1]
    nominal = [at(before["scheduled_for"]), at(skip["from"]), at(skip["to"]), at(after["scheduled_for"])]
    assert nominal[1] - nominal[0] == nominal[3] - nominal[2] == SECOND
    assert (nominal[2] - nominal[1]) / SECOND == skip["count"] - 1


def test_a_pause_of_a_run_lets_its_attempt_end_and_starts_no_retry(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(
        runAt=instant(0), handler="slow", payload={"seconds": 1.5}, timeout="PT1S", retry={"minBackoff": "PT0S"}
    )
    cluster.begun(job["jobId"])
    waiting = cluster.patch(job["jobId"], {"paused": True, "pauseReason": "the move"}, status=202)
    assert waiting["state"] == "claimed"
    _, explained = cluster.api.call("GET", f"/jobs/{job['jobId']}/explain")
    assert (explained["code"], explained["fields"]["waits"]) == ("change-waits", ["pause"])

    paused = cluster.until_state(job["jobId"], "paused")

    assert (paused["attempt"], paused["pauseReason"]) == (1, "the move")
    assert [run["outcome"] for run in cluster.runs(job["jobId"])] == ["timed_out"]
    cluster.patch(job["jobId"], {"paused": False, "timeout": None})
    assert [run["attempt"] for run in cluster.ended_runs(job["jobId"], 2)] == [1, 2]
    assert cluster.until_state(job["jobId"], "done")["attempt"] == 2


def test_a_trigger_runs_a_paused_job_once(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(runAt=instant(3600), handler="quick", payload={"n": 1})
    cluster.patch(job["jobId"], {"paused": True})
    cluster.post(f"/jobs/{job['jobId']}/trigger")
    (run,) = cluster.ended_runs(job["jobId"], 1)
    assert (run["cause"], run["outcome"]) == ("manual", "succeeded")
    cluster.until_state(job["jobId"], "paused")
    resumed = cluster.patch(job["jobId"], {"paused": False})
    assert resumed["nextRunAt"] == job["runAt"]


def test_triggers_under_a_run_become_one_run_afterwards(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(schedule={"every": "PT1H"}, handler="slow", payload={"seconds": 1.0})
    cluster.post(f"/jobs/{job['jobId']}/trigger")
    cluster.begun(job["jobId"])
    for _ in range(3):
        cluster.post(f"/jobs/{job['jobId']}/trigger")
    runs = cluster.ended_runs(job["jobId"], 2)
    assert [run["cause"] for run in runs] == ["manual", "manual"]
    assert cluster.until_state(job["jobId"], "due")["nextRunAt"] == job["nextRunAt"]
    assert len(cluster.witness("begin", job["jobId"])) == 2


def test_dead_jobs_are_mended_and_redriven_at_a_pace(cluster: Cluster) -> None:
    cluster.worker()
    body = {"runAt": instant(0), "handler": "failing", "retry": {"maxAttempts": 1}, "tags": ["sick"]}
    jobs = [cluster.create(**body)["jobId"] for _ in range(5)]
    for job_id in jobs:
        cluster.until_state(job_id, "dead")
        cluster.patch(job_id, {"payload": {"times": 0}})

    redriven = cluster.post("/jobs/redrive?tag=sick&perSecond=2")

    assert redriven["count"] == 5
    for job_id in jobs:
        cluster.until_state(job_id, "done")
    runs = [cluster.ended_runs(job_id, 2)[1] for job_id in jobs]
    assert {(run["cause"], run["outcome"], run["attempt"]) for run in runs} == {("redrive", "succeeded", 1)}
    starts = sorted(at(run["startedAt"]) for run in runs)
    assert starts[-1] - starts[0] >= timedelta(seconds=1.9)
    assert starts[-1] >= at(redriven["lastAt"])


def test_what_waits_for_the_current_run(cluster: Cluster) -> None:
    """A new schedule, and the end of the job."""
    cluster.worker()
    job = cluster.create(schedule={"every": "PT1S"}, handler="slow", payload={"seconds": 1.5})
    ended = cluster.create(schedule={"every": "PT1S"}, handler="slow", payload={"seconds": 1.5})
    cluster.begun(job["jobId"])
    cluster.begun(ended["jobId"])
    moved = {"schedule": None, "runAt": instant(3600)}
    assert cluster.patch(job["jobId"], moved, status=409)["code"] == "job-claimed"

    cluster.patch(job["jobId"], moved, "?afterCurrent=true", status=202)
    status, waiting = cluster.api.call("DELETE", f"/jobs/{ended['jobId']}?afterCurrent=true")

    assert (status, waiting["state"]) == (202, "claimed")
    cluster.until_state(ended["jobId"], "cancelled")
    after = cluster.until_state(job["jobId"], "due")
    assert (after["runAt"], after["nextRunAt"]) == (moved["runAt"], moved["runAt"])
    assert [run["outcome"] for run in cluster.runs(ended["jobId"])] == ["succeeded"]
