"""What the dashboard says of alerts, of jobs that nobody holds, and of the hour ahead; with no worker at all."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.store.alerting import Alerting
from ringcron.store.pool import Pool
from ringcron.store.worker import WorkerStore
from ringcron_coordinator.alerts import Alerts
from tests.support.api import running_api
from tests.support.browsing import Browser, Page, browsing
from tests.support.jobs import add_job, add_many, database_now
from tests.support.values import report_of
from tests.support.waiting import until

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def alerts(database_url: str) -> AsyncIterator[Alerts]:
    pool = Pool(database_url, application_name="test", max_size=1)
    alerts = Alerts(Alerting(pool, clock=SystemClock()), None, SystemClock(), overdue_seconds=300)
    yield alerts
    alerts.clear()
    await pool.close()


async def told(browser: Browser, path: str, text: str) -> Page:
    """The page, once it says that: what is read aside comes a moment later on a busy machine."""

    async def shown() -> Page | None:
        page = await browser.get(path)
        return page if text in page.text else None

    page = await until(shown, seconds=60, what=f"{path} says {text}")
    assert page is not None
    return page


async def test_a_breached_alert_shows_in_the_verdict_in_the_list_and_on_the_job(
    database_url: str, connection: Connection, alerts: Alerts
) -> None:
    async with running_api(database_url) as api, browsing(api.url) as browser:
        body = {"runAt": "2026-01-01T00:00:00Z", "name": "billing", "alertAfterLate": "PT1M"}
        late = (await api.post("/jobs", body))["jobId"]
        other = (await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z", "alertAfterLate": "PT1M"}))["jobId"]
        assert "No job breaches an alert." in (await browser.get("/dashboard/alerts")).text
        await connection.execute("update jobs set next_run_at = now() - interval '2 minutes' where id = %s", (late,))
        await connection.execute("update job_alerts set look_at = now()")
        await alerts.look()
        said = "billing has not started 1 min after it was due; it is due."
        page = await told(browser, "/dashboard", said)
        assert "An alert of a job is breached since 2" in page.text
        assert "/dashboard/alerts" in page.links
        page = await browser.get("/dashboard/alerts")
        assert f"/dashboard/jobs/{late}" in page.links
        assert re.search(r"billing has not started 1 min after it was due \S+ \S+ 1 min due default", page.text)
        page = await browser.get(f"/dashboard/jobs/{late}")
        assert "It has not started 1 min after it was due: its alert is breached since 2" in page.text
        assert "its alert is breached" not in (await browser.get(f"/dashboard/jobs/{other}")).text
        await connection.execute("update jobs set state = 'cancelled' where id = %s", (late,))
        await connection.execute("update job_alerts set look_at = now()")
        await alerts.look()
        await told(browser, "/dashboard/alerts", "No job breaches an alert.")


async def test_jobs_that_nobody_holds_are_named(database_url: str, connection: Connection) -> None:
    job_id = await add_job(connection, due_in=-100, handler="billing")
    async with running_api(database_url, overdue_seconds=90) as api, browsing(api.url) as browser:
        page = await told(browser, "/dashboard", "1 enabled job of billing is long overdue and nobody holds it")
        assert f"/dashboard/jobs/{job_id}" in page.links


async def test_the_hour_ahead_has_the_ticks_that_follow_from_schedules(
    database_url: str, connection: Connection
) -> None:
    later = (await database_now(connection)).replace(microsecond=0) + timedelta(minutes=30)
    await add_many(connection, 200, due_in=1800)
    await connection.execute("update jobs set next_run_at = %s", (later,))
    await add_job(connection, due_in=60, schedule={"every": "PT1M", "anchor": "2020-01-01T00:00:07Z"})
    clock = SystemClock()
    store = WorkerStore(
        database_url,
        worker_id="a.1",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=15,
        statement_seconds=10,
    )
    await store.report_worker(report_of("a.1", handlers=("noop",), capacity=20, mean_seconds={"noop": 5.0}))
    await store.close()
    # It does not age, however long the test takes.
    await connection.execute("update workers set seen_at = now() + interval '1 h'")
    async with running_api(database_url) as api, browsing(api.url) as browser:
        page = await told(browser, "/dashboard/spikes", "jobs become due at")
        assert f"200 jobs become due at {later:%H:%M:%S} UTC" in page.text or "201 jobs" in page.text
        assert "with 20 at a time and 5.0 s a run the last starts about 50 s late" in page.text
        assert "34 at a time would make it 30 s." in page.text
        shown = re.search(r"The next hour: (\d+) jobs, at most 20[01] in a second", page.html)
        assert shown is not None
        assert 255 <= int(shown[1]) <= 262  # a tick a minute, where one row stands
        wanted = (await api.get("/autoscale"))["desiredCapacity"]
        assert re.search(rf"capacity wanted {wanted}\b", page.text)
