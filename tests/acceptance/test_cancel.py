"""Cancels of runs, and cancels at the very instant, with real programs."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import aiohttp
import psycopg
import pytest

from tests.acceptance.conftest import Cluster, instant
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]

CANCEL_SECONDS = 1.0
"""Within this time a run hears that it is to stop; three times as much is asserted."""
FAR_LEASE = 120.0
"""A worker that renews so seldom hears of a cancel only if it is told."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("handler", ["slow", "plain"])
def test_a_cancel_reaches_the_run_within_a_second(cluster: Cluster, handler: str) -> None:
    """Issue 3, item 5: an async handler is cancelled, a plain one sees ctx.cancelled; long before the next renewal."""
    cluster.worker(lease_seconds=FAR_LEASE)
    job = cluster.create(runAt=instant(0), handler=handler, payload={"seconds": 60})
    cluster.begun(job["jobId"])
    run_id = cluster.job(job["jobId"])["runId"]

    asked_at = time.time()
    asked = cluster.post(f"/runs/{run_id}/cancel")

    assert asked["workerId"].startswith("w-1.")
    said = "cancelled" if handler == "slow" else "end"
    until_sync(lambda: cluster.witness(said, job["jobId"]), seconds=20)
    assert cluster.witness(said, job["jobId"])[0]["at"] - asked_at < 3 * CANCEL_SECONDS
    (run,) = cluster.ended_runs(job["jobId"], 1)
    assert run["outcome"] == "cancelled"
    assert cluster.job(job["jobId"])["state"] == "cancelled"
    assert cluster.post(f"/runs/{run_id}/cancel", status=409)["code"] == "run-finished"


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
        running = cluster.until_state(job["jobId"], "claimed")
        asked_at = time.time()
        cluster.post(f"/runs/{running['runId']}/cancel")
        until_sync(lambda: closed, seconds=20, what="the target's connection is closed")
        assert closed[0] - asked_at < 3 * CANCEL_SECONDS
    assert cluster.ended_runs(job["jobId"], 1)[0]["outcome"] == "cancelled"


def test_a_cancelled_run_of_a_recurring_job_is_not_tried_again_and_the_job_goes_on(cluster: Cluster) -> None:
    cluster.worker()
    job = cluster.create(schedule={"every": "PT2S"}, handler="slow", payload={"seconds": 60})
    cluster.begun(job["jobId"])
    cluster.post(f"/runs/{cluster.job(job['jobId'])['runId']}/cancel")
    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) == 2, seconds=20)
    first, second = cluster.witness("begin", job["jobId"])
    assert (first["attempt"], second["attempt"]) == (1, 1)
    assert at(second["scheduled_for"]) > at(first["scheduled_for"])


def test_without_the_bell_a_cancel_comes_with_the_renewal(cluster: Cluster) -> None:
    cluster.worker(bell="poll", lease_seconds=3.0)
    job = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 60})
    cluster.begun(job["jobId"])
    cluster.post(f"/runs/{cluster.job(job['jobId'])['runId']}/cancel")
    assert cluster.ended_runs(job["jobId"], 1, seconds=15)[0]["outcome"] == "cancelled"


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
