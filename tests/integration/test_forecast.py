"""GET /forecast and GET /autoscale, from real jobs and from what workers report."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.store.api import SESSION_OPTIONS
from ringcron.store.forecasting import COUNTED, HANDLERS
from ringcron.store.worker import WorkerStore
from ringcron_sql import query
from tests.support.api import ApiCaller, running_api
from tests.support.days import carve_days, day_names
from tests.support.jobs import add_job, add_many, database_now
from tests.support.plans import explain
from tests.support.values import report_of

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(
        database_url, autocommit=True, options=SESSION_OPTIONS
    ) as connection:
        yield connection


@pytest.fixture
async def api(database_url: str, connection: Connection) -> AsyncIterator[ApiCaller]:
    """Asked for after the jobs are there: what is read ahead is kept for a while."""
    async with running_api(database_url) as api:
        yield api


async def report(url: str, worker_id: str, **said: Any) -> None:
    clock = SystemClock()
    store = WorkerStore(
        url,
        worker_id=worker_id,
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=15,
        statement_seconds=10,
    )
    try:
        await store.report_worker(report_of(worker_id, **said))
    finally:
        await store.close()


async def test_the_spike_of_the_next_hour_and_when_it_clears(
    api: ApiCaller, connection: Connection, database_url: str
) -> None:
    nine = (await database_now(connection)).replace(microsecond=0) + timedelta(minutes=10)
    await add_many(connection, 200, due_in=600.0)
    await connection.execute("update jobs set next_run_at = %s", (nine,))
    await add_job(connection, due_in=60, schedule={"every": "PT20M", "anchor": "2020-01-01T00:00:00Z"})
    await add_job(connection, due_in=7200)
    await report(database_url, "a.1", handlers=("noop",), capacity=15, mean_seconds={"noop": 4.0})
    await report(database_url, "b.1", handlers=("noop",), capacity=5, mean_seconds={"noop": 6.0})
    await report(database_url, "c.1", handlers=("noop",), capacity=99, draining=True)

    forecast = await api.get("/forecast")

    assert forecast["peak"] == {"at": f"{nine:%Y-%m-%dT%H:%M:%SZ}", "due": 200}
    due = dict(forecast["perSecond"])
    start = datetime.fromisoformat(forecast["startsAt"])
    assert due.pop((nine - start).seconds) == 200
    assert sum(due.values()) in (3, 4)  # the row, and the ticks that follow within the hour
    assert sum(forecast["perMinute"]) == 200 + sum(due.values())
    assert (forecast["capacity"], forecast["meanSeconds"], forecast["complete"]) == (20, 5.0, True)
    assert forecast["worstDelaySeconds"] == 50.0  # 200 × 5 s on 20 at a time
    assert datetime.fromisoformat(forecast["clearsAt"]) - nine == timedelta(seconds=50)


async def test_the_pool_is_to_grow_before_the_spike_and_from_nothing(api: ApiCaller, connection: Connection) -> None:
    await add_many(connection, 120, due_in=100.0)
    await add_many(connection, 60, due_in=-5.0)

    waiting = await api.get("/autoscale", lead="PT0S", clear="PT60S")
    coming = await api.get("/autoscale", lead="PT3M", clear="PT1M")

    assert (waiting["desiredCapacity"], waiting["backlog"], waiting["dueNextMinute"]) == (1, 60, 0)
    assert (coming["desiredCapacity"], coming["capacity"], coming["horizonSeconds"]) == (2, 0, 240)


async def test_the_capacity_for_one_handler(api: ApiCaller, connection: Connection, database_url: str) -> None:
    await add_many(connection, 30, due_in=-1.0)
    for _ in range(3):
        await add_job(connection, due_in=-1, handler="slow")
    await report(database_url, "a.1", handlers=("slow",), capacity=7, mean_seconds={"slow": 40.0})
    await report(database_url, "b.1", handlers=("noop",), capacity=9)

    slow = await api.get("/autoscale", handler="slow")
    assert (slow["desiredCapacity"], slow["backlog"], slow["capacity"], slow["meanSeconds"]) == (2, 3, 7, 40.0)


async def test_faults(api: ApiCaller) -> None:
    for path, pointer in (
        ("/forecast?horizon=P2D", "/horizon"),
        ("/forecast?horizon=PT1S", "/horizon"),
        ("/autoscale?lead=3", "/lead"),
        ("/autoscale?clear=PT0S", "/clear"),
        ("/autoscale?handler=", "/handler"),
    ):
        refused = await api.call("GET", path)
        assert refused.status == 422, path
        assert set(refused.faults) == {pointer}


async def test_a_hostile_schedule_counts_its_row_and_spoils_nothing(api: ApiCaller, connection: Connection) -> None:
    job_id = await add_job(connection, due_in=60, schedule={"every": "PT10M", "anchor": "2020-01-01T00:00:00Z"})
    await connection.execute("update jobs set schedule = '{\"cron\": 5}' where id = %s", (job_id,))
    await add_job(connection, due_in=90)
    assert sum((await api.get("/forecast"))["perMinute"]) == 2


async def test_its_plan_prunes_and_leaps(connection: Connection) -> None:
    now = await database_now(connection)
    await carve_days(connection, "jobs", now, before=4, after=4)
    for due_in in (-86400.0 * 2, 600.0, 86400.0 * 3):
        await add_many(connection, 2000, due_in=due_in)
    await connection.execute("analyze")
    noon = now.astimezone(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    parameters = {
        "from_at": noon,
        "until_at": noon + timedelta(hours=1),
        "most": COUNTED,
        "limit": HANDLERS,
    }
    plan = await explain(connection, query("forecast_due"), parameters)
    assert plan.partitions == day_names("jobs", noon)
    assert plan.indexes == {"jobs_due"}
    assert not plan.sequential
