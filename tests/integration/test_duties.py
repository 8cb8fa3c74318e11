"""What a leader does besides the slices: lag in the metrics, partitions kept up; none of it stops the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY

from ringcron.clock import SystemClock
from ringcron.store.api import ApiStore
from ringcron.store.pool import Pool
from ringcron_coordinator.coordinator import Coordinator
from ringcron_coordinator.duties import Duties, repeat
from ringcron_coordinator.lag import LagReport
from tests.support.coordinators import metric, settings_for
from tests.support.jobs import add_job, add_many
from tests.support.servers import OwnPostgres
from tests.support.waiting import until


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def report(database_url: str) -> AsyncIterator[LagReport]:
    pool = Pool(database_url, application_name="test", max_size=1)
    report = LagReport(ApiStore(pool, clock=SystemClock()))
    yield report
    report.clear()
    await pool.close()


async def add_worker(connection: psycopg.AsyncConnection[Any], name: str, arcs: str) -> None:
    await connection.execute(
        """
        insert into workers (worker_id, name, capacity, running, handlers, version, tzdata, epoch, draining, slices,
                             seen_at)
        values (%(name)s || '.0', %(name)s, 1, 0, '{noop}', '1', '2026f', 1, false,
                jsonb_build_array(jsonb_build_object('handlers', '["noop"]'::jsonb, 'arcs', %(arcs)s::jsonb)), now())
        """,
        {"name": name, "arcs": arcs},
    )


def series(name: str) -> dict[str, float]:
    """The values of a gauge by its one label."""
    return {
        next(iter(sample.labels.values())): sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name == name
    }


async def test_lag_is_shown_by_slot_and_slice_and_taken_away_again(
    report: LagReport, connection: psycopg.AsyncConnection[Any]
) -> None:
    await add_worker(connection, "a", "[[0, 99]]")
    await add_worker(connection, "b", "[[100, 4095]]")
    early = await add_job(connection, slot=7, due_in=-30)
    await add_job(connection, slot=7, due_in=-10)
    await add_job(connection, slot=4000, due_in=-5)
    await add_job(connection, slot=50, due_in=3600)
    await report.look()
    assert series("ringcron_slot_lag_seconds").keys() == {"7", "4000"}
    assert 30 <= series("ringcron_slot_lag_seconds")["7"] < 90
    assert 30 <= series("ringcron_slice_lag_seconds")["a"] < 90
    assert 5 <= series("ringcron_slice_lag_seconds")["b"] < 25
    assert series("ringcron_slot_due_jobs") == {"7": 2, "4000": 1}
    assert metric("ringcron_due_jobs") == 3
    await connection.execute("delete from jobs where id = %s", (early,))
    await connection.execute("delete from jobs where slot = 4000")
    await connection.execute("update lag_snapshot set taken_at = taken_at - interval '1 s'")  # shared for a second
    await report.look()
    assert series("ringcron_slot_lag_seconds").keys() == {"7"}
    assert series("ringcron_slice_lag_seconds").keys() == {"a"}
    report.clear()
    assert series("ringcron_slot_lag_seconds") == series("ringcron_slice_lag_seconds") == {}
    assert metric("ringcron_due_jobs") == 0


async def test_jobs_whose_handler_nobody_has_are_no_lag_and_counted_apart(
    report: LagReport, connection: psycopg.AsyncConnection[Any]
) -> None:
    await add_worker(connection, "a", "[[0, 4095]]")
    await add_many(connection, 500, handler="gone")
    await add_job(connection, slot=9, due_in=-5)
    await report.look()
    assert series("ringcron_unclaimable_jobs") == {"gone": 500}
    assert series("ringcron_slot_lag_seconds").keys() == {"9"}
    assert metric("ringcron_due_jobs") == 1


async def test_a_duty_that_fails_is_counted_and_tried_again() -> None:
    tries = 0
    failures = _failures("lag")

    async def fail() -> None:
        nonlocal tries
        tries += 1
        raise ValueError("this one always fails")

    task = asyncio.create_task(repeat("lag", 0.01, fail, clock=SystemClock()))
    await until(lambda: tries >= 3)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert _failures("lag") - failures == tries


async def test_they_go_on_after_the_database_was_away(own_postgres: Callable[..., OwnPostgres]) -> None:
    server = own_postgres()
    url = server.url
    await asyncio.to_thread(server.stop)
    failures = _failures("upkeep"), _failures("lag")
    duties = Duties(settings_for(None, url, upkeep_seconds=0.2), clock=SystemClock())
    duties.start()
    await until(lambda: _failures("upkeep") > failures[0] and _failures("lag") > failures[1], seconds=30)
    await asyncio.to_thread(server.start)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await add_many(connection, 1, handler="gone")
        await until(lambda: _has_days(connection), seconds=30)
    await until(lambda: series("ringcron_unclaimable_jobs") == {"gone": 1}, seconds=30)
    await duties.stop()


async def test_without_zookeeper_a_coordinator_performs_its_duties_alone(
    database_url: str, connection: psycopg.AsyncConnection[Any]
) -> None:
    drain = asyncio.Event()
    alone = Coordinator(settings_for(None, database_url), id="c.0", clock=SystemClock())
    task = asyncio.create_task(alone.run(drain))
    await add_many(connection, 1, handler="gone")
    await until(lambda: _has_days(connection), seconds=30)
    await until(lambda: series("ringcron_unclaimable_jobs") == {"gone": 1}, seconds=30)
    assert metric("ringcron_coordinator_leader") == 1
    drain.set()
    await asyncio.wait_for(task, 30)
    assert metric("ringcron_coordinator_leader") == 0
    assert series("ringcron_unclaimable_jobs") == {}


def _failures(step: str) -> float:
    return REGISTRY.get_sample_value("ringcron_upkeep_failures_total", {"step": step}) or 0.0


async def _has_days(connection: psycopg.AsyncConnection[Any]) -> bool:
    cursor = await connection.execute("select count(*) from pg_inherits where inhparent = 'runs'::regclass")
    row = await cursor.fetchone()
    return row is not None and row[0] > 5
