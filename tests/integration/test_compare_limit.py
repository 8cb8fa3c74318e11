"""The limit's statements leave the rows that ringcron's own would, and what cannot be installed is absent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from loadtest.compare.contestants import Absent
from loadtest.compare.installing import python_environment
from loadtest.compare.started import read_starts
from loadtest.database import Database
from loadtest.limit import tasks
from loadtest.limit.bare_jobs import COMPLETE, ENQUEUE, Claimed, complete_parameters, enqueue_parameters
from loadtest.limit.batches import Batches
from loadtest.peers.protocol import STARTS_VARIABLE, Order
from tests.support.waiting import until

JOBS = 1200


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STARTS_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with Database(database_url) as database:
        yield database


def put_in(url: str, at: float) -> Order:
    order = Order(JOBS, at, 0.0)
    with psycopg.connect(url, autocommit=True) as connection:
        for chunk in order.chunks(1000):
            connection.execute(ENQUEUE, enqueue_parameters(chunk))
    return order


def left(database: Database) -> int:
    until_at = database.now()
    return int(database.value("ringcron/left", until=until_at, most=JOBS))


def rows(url: str, text: bytes) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(text).fetchall()


def assert_all_ran_once(url: str, starts: Path) -> None:
    assert sorted(start.seq for start in read_starts(starts)) == list(range(JOBS))
    assert rows(
        url, b"select state, lease_owner, lease_generation, attempt, count(*) from jobs group by 1, 2, 3, 4"
    ) == [("done", None, 1, 1, JOBS)]
    found = rows(
        url,
        b"""
        select r.outcome, r.attempt, r.cause, r.worker_id like 'limit-%', r.scheduled_for = j.run_at,
               r.finished_at >= r.started_at, count(*)
        from runs r join jobs j on j.id = r.job_id and j.lease_generation = r.lease_generation
        group by 1, 2, 3, 4, 5, 6""",
    )
    assert found == [("succeeded", 1, "schedule", True, True, True, JOBS)]


def test_batches_of_the_limit_run_each_job_once(database_url: str, database: Database, starts: Path) -> None:
    put_in(database_url, time.time() - 1)
    assert left(database) == JOBS
    batches = Batches(database_url)
    assert [batches.step() for _ in range(4)] == [500, 500, 200, 0]
    assert left(database) == 0
    assert_all_ran_once(database_url, starts)
    batches.close()


def test_tasks_of_the_limit_run_each_job_once(database_url: str, database: Database, starts: Path) -> None:
    async def work() -> None:
        working = asyncio.create_task(tasks.work(database_url))
        await until(lambda: left(database) == 0 or working.done(), seconds=30)
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working

    put_in(database_url, time.time() - 1)
    asyncio.run(work())
    assert_all_ran_once(database_url, starts)


def test_the_limit_sleeps_until_the_next_job_is_due(database_url: str, starts: Path) -> None:
    batches = Batches(database_url)
    assert batches.seconds_to_next() == 1.0
    put_in(database_url, time.time() + 3600)
    assert batches.step() == 0
    assert batches.seconds_to_next() == 1.0
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(ENQUEUE, enqueue_parameters([(JOBS, time.time() - 5)]))
    assert batches.seconds_to_next() == 0.0
    batches.close()


def test_a_stale_generation_completes_nothing(database_url: str, database: Database, starts: Path) -> None:
    put_in(database_url, time.time() - 1)
    with psycopg.connect(database_url, autocommit=True) as connection:
        [(job_id, next_run_at)] = connection.execute(b"select id, next_run_at from jobs limit 1").fetchall()
        within = {"from_at": next_run_at, "until_at": database.now()}
        stale = Claimed(job_id, next_run_at, 7, next_run_at)
        assert connection.execute(COMPLETE, complete_parameters([stale], "limit-0", within)).rowcount == 0
    assert left(database) == JOBS
    assert rows(database_url, b"select from runs") == []


def test_what_cannot_be_installed_is_absent_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="failed"):
        python_environment(tmp_path, "nothing", [str(tmp_path / "nothing.whl")])
    assert list(tmp_path.iterdir()) == []
