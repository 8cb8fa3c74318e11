"""How long one claim, one call of the API and one step of upkeep take, at one size of the table.

Invariant: what is measured is ringcron's own code: the worker's store, the API, the coordinator's upkeep. What it
leaves behind is taken away again, but for the jobs that were cancelled and moved.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from loadtest.api_call import ApiConnection
from loadtest.claimers import ClaimPlan, claim_all
from loadtest.cluster.own import OwnCluster
from loadtest.distributions import Distribution
from loadtest.jobs import due_jobs, insert_jobs
from ringcron.clock import SystemClock
from ringcron.settings import CoordinatorSettings
from ringcron.slots import SLOT_COUNT
from ringcron.store.pool import Pool
from ringcron.store.upkeep import Upkeep

OPERATIONS: Final = ("claim", "get", "list", "reschedule", "cancel", "upkeep")
CLAIM_BATCH: Final = 10
WARM_UP: Final = 30
"""Calls that are not counted: connections open, plans are made, what was just stored is read for the first time."""
DAYS_AHEAD: Final = 14
UPKEEP_SECONDS: Final = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Latencies:
    """In milliseconds, by operation."""

    jobs: int
    of: dict[str, Distribution]
    bytes_a_job: float

    def document(self) -> dict[str, Any]:
        """For the record."""
        return {
            "jobs": self.jobs,
            "bytesAJob": self.bytes_a_job,
            "milliseconds": {name: found.document() for name, found in self.of.items()},
        }


def measure_latencies(cluster: OwnCluster, ids: Sequence[UUID], *, jobs: int, samples: int, step: int) -> Latencies:
    """Time every operation. `ids`: jobs far ahead to work on. `step`: 1, 2, …; upkeep carves one more day each time."""
    size = cluster.database.value("measure_jobs")
    found = {
        "claim": _claims(cluster, samples),
        **_calls(cluster, random.sample(list(ids), k=len(ids)), samples),
        "upkeep": [1000 * asyncio.run(_upkeep(cluster, DAYS_AHEAD + step))],
    }
    return Latencies(
        jobs=jobs,
        of={name: Distribution.of(values) for name, values in found.items()},
        bytes_a_job=float(size) / jobs,
    )


def _claims(cluster: OwnCluster, samples: int) -> list[float]:
    """One claimer in a quarter of the ring, while four times as much is due."""
    database = cluster.database
    now = database.now()
    count = 4 * CLAIM_BATCH * (samples + WARM_UP)
    backlog = due_jobs([now - timedelta(seconds=1)] * count, created_at=now)
    insert_jobs(database, backlog, handler=cluster.handler, created_at=now, payload={})
    plan = ClaimPlan(
        url=cluster.database_url,
        name="claimer",
        arc=(0, SLOT_COUNT // 4 - 1),
        handler=cluster.handler,
        batch=CLAIM_BATCH,
        most=samples + WARM_UP,
    )
    (claimed,) = claim_all([plan], processes=1)
    database.run("delete_backlog", at=now - timedelta(seconds=1), handler=cluster.handler)
    return [1000 * took for _, took, got in claimed.claims[WARM_UP:] if got]


def _calls(cluster: OwnCluster, ids: Sequence[UUID], samples: int) -> dict[str, list[float]]:
    """The calls of the API, interleaved, each on a job that none before was made on."""
    clock = SystemClock()
    took: dict[str, list[float]] = {"get": [], "list": [], "reschedule": [], "cancel": []}
    far = cluster.database.now() + timedelta(days=30)
    count = min(samples + WARM_UP, len(ids) // 3)
    with ApiConnection(cluster.api_url) as connection:

        def timed(name: str, method: str, path: str, body: object, expect: int) -> None:
            began = clock.elapsed()
            connection.call(method, path, body, expect=expect)
            took[name].append(1000 * (clock.elapsed() - began))

        for index in range(count):
            seen, moved, gone = ids[3 * index], ids[3 * index + 1], ids[3 * index + 2]
            run_at = (far + timedelta(seconds=random.uniform(0, 86400 * 200))).isoformat()
            timed("get", "GET", f"/jobs/{seen}", None, 200)
            timed("list", "GET", "/jobs?limit=50", None, 200)
            timed("reschedule", "PATCH", f"/jobs/{moved}", {"runAt": run_at}, 200)
            timed("cancel", "DELETE", f"/jobs/{gone}", None, 204)
    return {name: values[min(WARM_UP, len(values) // 2) :] for name, values in took.items()}


async def _upkeep(cluster: OwnCluster, days_ahead: int) -> float:
    """Seconds of one step of upkeep that carves one more day."""
    clock = SystemClock()
    settings = CoordinatorSettings(database_url=cluster.database_url)
    pool = Pool(cluster.database_url, application_name="loadtest upkeep", max_size=2, seconds=UPKEEP_SECONDS)
    upkeep = Upkeep(
        pool,
        clock,
        days_ahead=days_ahead,
        keep_runs_seconds=settings.keep_runs_seconds,
        keep_jobs_seconds=settings.keep_jobs_seconds,
        keep_runs_bytes=settings.keep_runs_bytes,
    )
    try:
        began = clock.elapsed()
        await upkeep.step()
        return clock.elapsed() - began
    finally:
        await pool.close()
