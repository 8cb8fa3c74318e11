"""Slices by ZooKeeper, and life without it: real coordinators, workers and ZooKeeper."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.conftest import Cluster, instant
from tests.support.servers import OwnZooKeeper
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(240)]

SESSION_SECONDS = 3.0
QUICK: dict[str, Any] = {"session_seconds": SESSION_SECONDS}
EAGER: dict[str, Any] = {**QUICK, "quiet_seconds": 0.3, "quiet_cap_seconds": 2, "ack_seconds": 3, "relist_seconds": 2}


def slots_of(item: dict[str, Any]) -> set[int]:
    return {slot for lo, hi in item["arcs"] for slot in range(lo, hi + 1)}


def shards(cluster: Cluster) -> dict[str, Any]:
    status, answer = cluster.api.call("GET", "/shards")
    assert status == 200
    return answer  # type: ignore[no-any-return]


def disjoint_and_complete(cluster: Cluster, workers: int) -> bool:
    """Whether so many workers hold slices that together are the ring, no slot twice."""
    answer = shards(cluster)
    slices = [slots_of(item) for item in answer["items"] if item["arcs"]]
    return (
        len(slices) == workers and sum(map(len, slices)) == 4096 == len(set().union(*slices)) and not answer["unowned"]
    )


def start(cluster: Cluster, zookeeper: str, workers: int) -> list[Any]:
    cluster.programs.coordinator(cluster.database_url, zookeeper, name="c-1", **EAGER)
    cluster.programs.coordinator(cluster.database_url, zookeeper, name="c-2", **EAGER)
    started = [cluster.worker(f"w-{n}", zookeeper, **QUICK) for n in range(workers)]
    until_sync(lambda: disjoint_and_complete(cluster, workers), seconds=40, what=f"{workers} disjoint slices")
    return started


def all_succeed(cluster: Cluster, count: int, ahead: float = 1.0, seconds: float = 30.0) -> None:
    when = instant(ahead)
    jobs = [cluster.create(runAt=when, handler="quick")["jobId"] for _ in range(count)]
    for job in jobs:
        (run,) = cluster.ended_runs(job, 1, seconds=seconds)
        assert run["outcome"] == "succeeded"


def test_s37_each_worker_has_a_disjoint_slice_and_a_dead_ones_slice_moves(
    cluster: Cluster, zookeeper_hosts: str
) -> None:
    """S37: membership gives each worker a disjoint slice; the coordinator rebalances when membership changes."""
    workers = start(cluster, zookeeper_hosts, 3)
    all_succeed(cluster, 60, ahead=5.0)  # further ahead than a poll: every worker has seen them coming
    owners = {run["workerId"] for line in cluster.witness("begin") for run in cluster.runs(line["job"])}
    assert len(owners) == 3

    workers[0].kill()
    until_sync(lambda: disjoint_and_complete(cluster, 2), seconds=40, what="its slots have owners again")
    all_succeed(cluster, 20)

    workers[1].terminate()
    assert workers[1].wait() == 0
    until_sync(lambda: disjoint_and_complete(cluster, 1), seconds=40)


def test_without_any_coordinator_due_jobs_run(cluster: Cluster, zookeeper_hosts: str) -> None:
    """R12: nobody owns a slot; every worker helps."""
    cluster.worker("w-0", zookeeper_hosts, **QUICK)
    all_succeed(cluster, 10)


@pytest.mark.parametrize("trouble", ["stopped", "frozen"])
def test_with_zookeeper_away_due_jobs_go_on_and_workers_come_back(
    cluster: Cluster, own_zookeeper: Callable[[], OwnZooKeeper], trouble: str
) -> None:
    """K1, K3: no membership, no pause; registered again within the session timeout + 5 s."""
    server = own_zookeeper()
    hosts = f"{server.hosts}/ringcron"
    workers = start(cluster, hosts, 2)

    server.stop() if trouble == "stopped" else server.freeze()
    gone_at = time.monotonic()
    all_succeed(cluster, 10)
    until_sync(lambda: time.monotonic() > gone_at + 3 * SESSION_SECONDS, seconds=60, what="the trouble has lasted")
    all_succeed(cluster, 10)
    server.start() if trouble == "stopped" else server.thaw()

    until_sync(
        lambda: disjoint_and_complete(cluster, 2), seconds=3 * (SESSION_SECONDS + 5), what="two disjoint slices again"
    )
    all_succeed(cluster, 10)
    assert all(worker.running for worker in workers)


def test_a_job_whose_handler_nobody_has_waits_and_disturbs_nobody(cluster: Cluster, zookeeper_hosts: str) -> None:
    """A47, R14: it stays due for a capable worker, its attempt not spent."""
    start(cluster, zookeeper_hosts, 1)
    stranger = cluster.create(runAt=instant(0), handler="of-another-fleet")
    all_succeed(cluster, 5)
    job = cluster.job(stranger["jobId"])
    assert (job["state"], job["attempt"]) == ("due", 0)
