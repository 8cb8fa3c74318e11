"""The life of a job as its owner sees it: contract.md §4 and §5 with real programs."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import aiohttp
import psycopg
import pytest

from tests.acceptance.conftest import Cluster, instant
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

SECOND = timedelta(seconds=1)
CANCEL_SECONDS = 1.0
"""Within this time a run hears that it is to stop; three times as much is asserted."""
FAR_POLL = 60.0
"""A worker that looks so seldom starts what is due at once only if it is told."""
FAR_LEASE = 120.0
"""A worker that renews so seldom hears of a cancel only if it is told."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def patch(cluster: Cluster, job_id: str, body: dict[str, Any], query: str = "", *, status: int = 200) -> dict[str, Any]:
    answered, job = cluster.api.call("PATCH", f"/jobs/{job_id}{query}", body)
    assert answered == status, job
    return job  # type: ignore[no-any-return]


def post(cluster: Cluster, path: str, *, status: int = 202) -> dict[str, Any]:
    answered, body = cluster.api.call("POST", path)
    assert answered == status, body
    return body  # type: ignore[no-any-return]


def state(cluster: Cluster, job_id: str, wanted: str, seconds: float = 30.0) -> dict[str, Any]:
    """The job, once it is in this state."""
    until_sync(lambda: cluster.job(job_id)["state"] == wanted, seconds=seconds, what=f"{job_id} is {wanted}")
    return cluster.job(job_id)


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


def test_a_job_that_is_due_at_once_starts_without_waiting_for_the_poll(cluster: Cluster) -> None:
    """The bell: an idle worker that looks once a minute."""
    cluster.worker(poll_seconds=FAR_POLL)
    first = cluster.create(runAt=instant(0), handler="quick")
    cluster.begun(first["jobId"])  # it is up, and asleep again
    job = cluster.create(runAt=instant(0), handler="quick")
    cluster.begun(job["jobId"], seconds=3.0)
    later = cluster.create(runAt=instant(3600), handler="quick")
    post(cluster, f"/jobs/{later['jobId']}/trigger")
    cluster.begun(later["jobId"], seconds=3.0)


@pytest.mark.parametrize("handler", ["slow", "plain"])
def test_a_cancel_reaches_the_run_within_a_second(cluster: Cluster, handler: str) -> None:
    """Issue 3, item 5: an async handler is cancelled, a plain one sees ctx.cancelled; long before the next renewal."""
    cluster.worker(lease_seconds=FAR_LEASE)
    job = cluster.create(runAt=instant(0), handler=handler, payload={"seconds": 60})
    cluster.begun(job["jobId"])
    run_id = cluster.job(job["jobId"])["runId"]

    asked_at = time.time()
    asked = post(cluster, f"/runs/{run_id}/cancel")

    assert asked["workerId"].startswith("w-1.")
    said = "cancelled" if handler == "slow" else "end"
    until_sync(lambda: cluster.witness(said, job["jobId"]), seconds=20)
    assert cluster.witness(said, job["jobId"])[0]["at"] - asked_at < 3 * CANCEL_SECONDS
    (run,) = cluster.ended_runs(job["jobId"], 1)
    assert run["outcome"] == "cancelled"
    assert cluster.job(job["jobId"])["state"] == "cancelled"
    assert post(cluster, f"/runs/{run_id}/cancel", status=409)["code"] == "run-finished"


@contextmanager
def silent_target() -> Iterator[tuple[str, list[float]]]:
    """An HTTP server that never answers; when its caller hung up stands in the list."""
    closed: list[float] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(65536):
                pass
            closed.append(time.time())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/", closed
    listener.close()
    thread.join(10)


def test_the_target_of_a_cancelled_run_sees_its_connection_closed(cluster: Cluster) -> None:
    cluster.worker(lease_seconds=FAR_LEASE, http_allow=("127.0.0.0/8",))
    with silent_target() as (url, closed):
        job = cluster.create(runAt=instant(0), handler="http", payload={"url": url, "method": "POST"})
        running = state(cluster, job["jobId"], "claimed")
        asked_at = time.time()
        post(cluster, f"/runs/{running['runId']}/cancel")
        until_sync(lambda: closed, seconds=20, what="the target's connection is closed")
        assert closed[0] - asked_at < 3 * CANCEL_SECONDS
    assert cluster.ended_runs(job["jobId"], 1)[0]["outcome"] == "cancelled"


def test_a_cancelled_run_of_a_recurring_job_is_not_tried_again_and_the_job_goes_on(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(schedule={"every": "PT2S"}, handler="slow", payload={"seconds": 60})
    cluster.begun(job["jobId"])
    post(cluster, f"/runs/{cluster.job(job['jobId'])['runId']}/cancel")
    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) == 2, seconds=20)
    first, second = cluster.witness("begin", job["jobId"])
    assert (first["attempt"], second["attempt"]) == (1, 1)
    assert at(second["scheduled_for"]) > at(first["scheduled_for"])


def test_without_the_bell_a_cancel_comes_with_the_renewal(cluster: Cluster) -> None:
    cluster.worker(bell="poll", lease_seconds=3.0)
    job = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 60})
    cluster.begun(job["jobId"])
    post(cluster, f"/runs/{cluster.job(job['jobId'])['runId']}/cancel")
    assert cluster.ended_runs(job["jobId"], 1, seconds=15)[0]["outcome"] == "cancelled"


def test_a_paused_job_rests_and_goes_on_at_a_tick_with_one_skip_for_what_passed(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(schedule={"every": "PT1S"}, handler="quick")
    cluster.ended_runs(job["jobId"], 1)
    status, _ = cluster.api.call("PATCH", f"/jobs/{job['jobId']}", {"paused": True})
    assert status in (200, 202)
    paused = state(cluster, job["jobId"], "paused")
    assert (paused["pausedBy"], paused["nextRunAt"]) == ("anonymous", None)
    ran = len(cluster.witness("begin", job["jobId"]))
    clock = cluster.create(runAt=instant(3.5), handler="quick")
    cluster.ended_runs(clock["jobId"], 1)
    assert len(cluster.witness("begin", job["jobId"])) == ran

    resumed = patch(cluster, job["jobId"], {"paused": False})

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
    waiting = patch(cluster, job["jobId"], {"paused": True, "pauseReason": "the move"}, status=202)
    assert waiting["state"] == "claimed"
    _, explained = cluster.api.call("GET", f"/jobs/{job['jobId']}/explain")
    assert (explained["code"], explained["fields"]["waits"]) == ("change-waits", ["pause"])

    paused = state(cluster, job["jobId"], "paused")

    assert (paused["attempt"], paused["pauseReason"]) == (1, "the move")
    assert [run["outcome"] for run in cluster.runs(job["jobId"])] == ["timed_out"]
    patch(cluster, job["jobId"], {"paused": False, "timeout": None})
    assert [run["attempt"] for run in cluster.ended_runs(job["jobId"], 2)] == [1, 2]
    assert state(cluster, job["jobId"], "done")["attempt"] == 2


def test_a_trigger_runs_a_paused_job_once(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(runAt=instant(3600), handler="quick", payload={"n": 1})
    patch(cluster, job["jobId"], {"paused": True})
    post(cluster, f"/jobs/{job['jobId']}/trigger")
    (run,) = cluster.ended_runs(job["jobId"], 1)
    assert (run["cause"], run["outcome"]) == ("manual", "succeeded")
    state(cluster, job["jobId"], "paused")
    resumed = patch(cluster, job["jobId"], {"paused": False})
    assert resumed["nextRunAt"] == job["runAt"]


def test_triggers_under_a_run_become_one_run_afterwards(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(schedule={"every": "PT1H"}, handler="slow", payload={"seconds": 1.0})
    post(cluster, f"/jobs/{job['jobId']}/trigger")
    cluster.begun(job["jobId"])
    for _ in range(3):
        post(cluster, f"/jobs/{job['jobId']}/trigger")
    runs = cluster.ended_runs(job["jobId"], 2)
    assert [run["cause"] for run in runs] == ["manual", "manual"]
    assert state(cluster, job["jobId"], "due")["nextRunAt"] == job["nextRunAt"]
    assert len(cluster.witness("begin", job["jobId"])) == 2


def test_dead_jobs_are_mended_and_redriven_at_a_pace(cluster: Cluster) -> None:
    cluster.worker()
    body = {"runAt": instant(0), "handler": "failing", "retry": {"maxAttempts": 1}, "tags": ["sick"]}
    jobs = [cluster.create(**body)["jobId"] for _ in range(5)]
    for job_id in jobs:
        state(cluster, job_id, "dead")
        patch(cluster, job_id, {"payload": {"times": 0}})

    redriven = post(cluster, "/jobs/redrive?tag=sick&perSecond=2")

    assert redriven["count"] == 5
    for job_id in jobs:
        state(cluster, job_id, "done")
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
    assert patch(cluster, job["jobId"], moved, status=409)["code"] == "job-claimed"

    patch(cluster, job["jobId"], moved, "?afterCurrent=true", status=202)
    status, waiting = cluster.api.call("DELETE", f"/jobs/{ended['jobId']}?afterCurrent=true")

    assert (status, waiting["state"]) == (202, "claimed")
    state(cluster, ended["jobId"], "cancelled")
    after = state(cluster, job["jobId"], "due")
    assert (after["runAt"], after["nextRunAt"]) == (moved["runAt"], moved["runAt"])
    assert [run["outcome"] for run in cluster.runs(ended["jobId"])] == ["succeeded"]


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
    state(cluster, job["jobId"], "done")
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
    assert state(cluster, dies["jobId"], "dead")["deadReason"].startswith("failed at attempt 1 of 1: boom")
    assert len(cluster.runs(dies["jobId"])) == 1


CANCELS = 1000
CANCELS_A_SECOND = 150


async def test_of_a_thousand_cancels_at_the_instant_each_is_a_204_and_never_ran_or_a_409_and_ran(
    cluster: Cluster,
) -> None:
    """Issue 3: fired at due ± 5 ms. (Ten thousand in the load tests.)"""
    cluster.worker(concurrency=200)
    begin = datetime.now(UTC) + timedelta(seconds=3)
    instants = [begin + timedelta(seconds=n / CANCELS_A_SECOND) for n in range(CANCELS)]
    jobs = [{"runAt": instant.isoformat(), "handler": "quick"} for instant in instants]
    chance = random.Random(CANCELS)
    async with aiohttp.ClientSession(cluster.api.url, connector=aiohttp.TCPConnector(limit=0)) as session:
        async with session.post("/jobs/batch", json={"jobs": jobs}) as answer:
            ids = [result["jobId"] for result in (await answer.json())["results"]]

        async def cancel_at(job_id: str, instant: datetime) -> int:
            ahead = (instant - datetime.now(UTC)).total_seconds() + chance.uniform(-0.005, 0.005)
            await asyncio.sleep(max(0.0, ahead))
            async with session.delete(f"/jobs/{job_id}") as answer:
                return answer.status

        tasks = [cancel_at(job_id, instant) for job_id, instant in zip(ids, instants, strict=True)]
        statuses = dict(zip(ids, await asyncio.gather(*tasks), strict=True))

    assert set(statuses.values()) <= {204, 409}
    with psycopg.connect(cluster.database_url, autocommit=True) as connection:

        def states() -> dict[str, str]:
            return {str(job_id): found for job_id, found in connection.execute("select id, state from jobs")}

        until_sync(lambda: set(states().values()) <= {"done", "cancelled"}, seconds=30, what="all have ended")
        ended = states()
    began = {line["job"] for line in cluster.witness("begin")}
    for job_id, status in statuses.items():
        # 204 also where it had ended before the cancel came: then it ran to its end first, and is `done`.
        ran = job_id in began
        assert ran == (ended[job_id] == "done"), (job_id, status, ended[job_id])
        assert ran or status == 204, (job_id, status)
