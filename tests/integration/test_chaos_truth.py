"""The audit of a chaos run: what a worker's life looks like in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from loadtest.chaos.history import History, Job
from loadtest.chaos.invariants import check
from loadtest.chaos.truth import install_audit, read_runs, read_skips, read_versions
from loadtest.database import Database
from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import RunOutcome
from ringcron.ring import WHOLE_RING
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.worker import WorkerStore
from tests.support.completing import finish
from tests.support.days import carve_days
from tests.support.jobs import add_job, database_now


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with Database(database_url) as database:
        install_audit(database)
        yield database


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[WorkerStore]:
    clock = SystemClock()
    worker = WorkerStore(
        database_url,
        worker_id="w-1.00000001",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=60.0,
        statement_seconds=30.0,
    )
    yield worker
    await worker.close()


async def test_a_claim_and_its_completion_across_a_partition(
    database: Database, database_url: str, worker: WorkerStore
) -> None:
    async with await psycopg.AsyncConnection[Any].connect(database_url, autocommit=True) as connection:
        await carve_days(connection, "jobs", await database_now(connection), before=2, after=2)
        job_id = str(await add_job(connection, due_in=-86400 * 1.5))
    (claim,) = await worker.claim(WHOLE_RING, ["noop"], batch=10, bounds=UNBOUNDED)
    await finish(worker, claim, RunOutcome.SUCCEEDED)

    versions = [version for version in read_versions(database) if version.job == job_id]
    assert [(version.change, version.state) for version in versions] == [
        ("insert", "due"),
        ("update", "claimed"),
        ("update", "done"),  # its row moved to the partition of today
    ]
    assert versions[1].owner == "w-1.00000001"
    runs = read_runs(database)
    assert [(run.job, run.generation, run.outcome) for run in runs] == [(job_id, 1, "succeeded")]

    created = versions[0]
    history = History(
        jobs={job_id: Job(job=job_id, created_at=created.at, run_at=created.scheduled_for)},
        versions=versions,
        runs=runs,
        skips=read_skips(database),
        ended_at=versions[-1].at + 60,
    )
    assert {violation.invariant for violation in check(history)} == {"I8"}  # nobody told a sink
