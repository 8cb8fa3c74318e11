"""Alerts for one job and the audit, with a real database, a real receiver, and no worker at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from aiohttp import web
from prometheus_client import REGISTRY

from ringcron.addresses import AddressPolicy
from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import RunOutcome
from ringcron.ring import WHOLE_RING
from ringcron.store.alerting import AUDITED, AUDITED_HANDLERS, LOOKED_AT, SHOWN, Alerting
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.pool import Pool
from ringcron.store.worker import WorkerStore
from ringcron_api.server import listen
from ringcron_coordinator.alert_calls import AlertCalls
from ringcron_coordinator.alerts import Alerts
from ringcron_sql import query
from tests.support.api import ApiCaller, running_api
from tests.support.completing import finish
from tests.support.coordinators import metric
from tests.support.days import carve_days
from tests.support.jobs import add_job, add_many, database_now
from tests.support.plans import explain

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]


class Receiver:
    """Takes alerts; `status` is what it answers."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.status = 204
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        self.heard.append(await request.json())
        self.keys.append(request.headers["Idempotency-Key"])
        return web.Response(status=self.status)

    def sentences(self) -> list[str]:
        return [heard["sentence"] for heard in self.heard]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/hook", receiver.take)
    runner, url = await listen(app, "127.0.0.1", 0)
    receiver.url = f"{url}/hook?token=secret"
    yield receiver
    await runner.cleanup()


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@asynccontextmanager
async def alerting(database_url: str, url: str | None, *, allow: tuple[str, ...] = ()) -> AsyncIterator[Alerts]:
    clock = SystemClock()
    pool = Pool(database_url, application_name="test", max_size=1)
    calls = None if url is None else AlertCalls(url, AddressPolicy(allow=allow))
    alerts = Alerts(Alerting(pool, clock=clock), calls, clock, overdue_seconds=300)
    yield alerts
    alerts.clear()
    await pool.close()


@pytest.fixture
async def alerts(database_url: str, receiver: Receiver) -> AsyncIterator[Alerts]:
    async with alerting(database_url, receiver.url, allow=("127.0.0.0/8",)) as alerts:
        yield alerts


def late_jobs() -> float | None:
    return REGISTRY.get_sample_value("ringcron_job_alerts", {"kind": "late"})


async def look_again(connection: Connection, alerts: Alerts) -> None:
    """As if the time of the next look had come."""
    await connection.execute("update job_alerts set look_at = now()")
    await alerts.look()


async def test_a_job_that_nobody_starts_is_told_once_and_its_end_too(
    api: ApiCaller, connection: Connection, alerts: Alerts, receiver: Receiver, database_url: str
) -> None:
    created = await api.post("/jobs", {"runAt": "2026-01-01T00:00:00Z", "key": "billing", "alertAfterLate": "PT1M"})
    assert created["alertAfterLate"] == "PT1M"
    await alerts.look()
    assert receiver.heard == []  # what was due in the past is due from its creation on

    await connection.execute("update jobs set next_run_at = now() - interval '2 minutes'")
    await look_again(connection, alerts)
    await look_again(connection, alerts)

    assert receiver.sentences() == ["billing has not started 60 s after it was due; it is due"]
    assert receiver.heard[0] | {"began": None} == {
        "type": "ringcron.job-alert",
        "kind": "late",
        "jobId": created["jobId"],
        "key": "billing",
        "name": None,
        "handler": "default",
        "state": "due",
        "began": None,
        "limitSeconds": 60.0,
        "sentence": receiver.sentences()[0],
    }
    assert late_jobs() == 1

    await api.patch(f"/jobs/{created['jobId']}", {"runAt": "2099-01-01T00:00:00Z"})
    await alerts.look()  # an act of a person is looked at at once
    assert receiver.sentences()[1:] == ["billing is no longer late"]
    assert late_jobs() == 0
    assert receiver.keys[0] != receiver.keys[1]


async def test_no_success_for_too_long_until_a_run_succeeds(
    api: ApiCaller, connection: Connection, alerts: Alerts, receiver: Receiver, database_url: str
) -> None:
    body = {"schedule": {"every": "PT1H"}, "handler": "noop", "name": "report", "alertIfNoSuccessFor": "P1D"}
    job = await api.post("/jobs", body)
    await connection.execute("update job_alerts set since = now() - interval '25 hours'")
    await api.patch(f"/jobs/{job['jobId']}", {"paused": True})
    await alerts.look()
    assert receiver.sentences() == ["report has had no success for 86400 s; it is paused"]

    await api.patch(f"/jobs/{job['jobId']}", {"paused": False})
    await api.call("POST", f"/jobs/{job['jobId']}/trigger")
    clock = SystemClock()
    worker = WorkerStore(
        database_url,
        worker_id="w.1",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=60,
        statement_seconds=10,
    )
    (claim,) = await worker.claim(WHOLE_RING, ["noop"], batch=1, bounds=UNBOUNDED)
    await finish(worker, claim, RunOutcome.SUCCEEDED)
    await worker.close()
    await look_again(connection, alerts)
    assert receiver.sentences()[1:] == ["report is in order again"]
    await look_again(connection, alerts)
    assert len(receiver.heard) == 2


async def test_what_could_not_be_told_is_told_later(
    connection: Connection, api: ApiCaller, database_url: str, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    await api.post("/jobs", {"runAt": "2099-01-01T00:00:00Z", "alertIfNoSuccessFor": "PT1S"})
    await connection.execute("update job_alerts set since = now() - interval '1 hour'")
    async with alerting(database_url, receiver.url) as refused:  # 127.0.0.1 is closed unless it is allowed
        await refused.look()
    receiver.status = 500
    async with alerting(database_url, receiver.url, allow=("127.0.0.1",)) as failing:
        await failing.look()
    assert len(receiver.heard) == 1
    receiver.status = 200
    async with alerting(database_url, receiver.url, allow=("127.0.0.1",)) as told:
        await told.look()
        await look_again(connection, told)
    assert len(receiver.heard) == 2
    assert len(set(receiver.keys)) == 1
    assert "secret" not in caplog.text


async def test_alerts_go_with_the_job_and_with_the_wish(api: ApiCaller, connection: Connection, alerts: Alerts) -> None:
    async def watched() -> int:
        await look_again(connection, alerts)
        cursor = await connection.execute("select count(*) from job_alerts")
        row = await cursor.fetchone()
        assert row is not None
        return int(row[0])

    lines = [{"runAt": "2099-01-01T00:00:00Z", "alertAfterLate": "PT1M"}, {"runAt": "2099-01-01T00:00:00Z"}]
    stored = await api.post("/jobs/batch", {"jobs": lines})
    first = stored["results"][0]["jobId"]
    assert await watched() == 1
    await api.patch(f"/jobs/{first}", {"alertAfterLate": None})
    assert await watched() == 0
    await api.patch(f"/jobs/{first}", {"alertIfNoSuccessFor": "PT5M"})
    assert await watched() == 1
    assert (await api.get(f"/jobs/{first}"))["alertIfNoSuccessFor"] == "PT5M"
    await api.delete(f"/jobs/{first}")
    assert await watched() == 0


async def test_the_audit_finds_enabled_jobs_that_nobody_runs(connection: Connection, alerts: Alerts) -> None:
    await add_many(connection, 3, due_in=-600.0)
    await add_job(connection, due_in=-301, handler="nobody")
    await add_job(connection, due_in=-200)
    lapsed = await add_job(connection, due_in=-900)
    held = await add_job(connection, due_in=-900)
    for job_id, until in ((lapsed, -400), (held, 5)):
        await connection.execute(
            "update jobs set state = 'claimed', lease_owner = 'w', claimed_at = now(), "
            "lease_until = now() + make_interval(secs => %s) where id = %s",
            (until, job_id),
        )
    await alerts.audit()
    assert metric("ringcron_jobs_overdue_without_lease") == 5
    await connection.execute("delete from jobs")
    await alerts.audit()
    assert metric("ringcron_jobs_overdue_without_lease") == 0


async def test_plans(connection: Connection) -> None:
    now = await database_now(connection)
    await carve_days(connection, "jobs", now, before=4, after=4)
    await carve_days(connection, "runs", now, before=4, after=4)
    for due_in in (-86400.0 * 2, -600.0, 86400.0):
        await add_many(connection, 1000, due_in=due_in)
    await connection.execute(
        "insert into job_alerts (job_id, since, look_at, late_since) "
        "select id, now(), now() + case when slot < 20 then interval '-1 s' else interval '1 h' end, "
        "case when slot < 20 then now() end from jobs"
    )
    await connection.execute("analyze")
    audit = {"until_at": now - timedelta(seconds=300), "most": AUDITED, "limit": AUDITED_HANDLERS}
    async with connection.transaction():
        await connection.execute(query("prefer_indexes"))
        plan = await explain(connection, query("audit_overdue"), audit)
    assert plan.indexes == {"jobs_due", "jobs_claimed"}
    assert not plan.sequential
    looked = await explain(connection, query("look_at_alerts"), {"limit": LOOKED_AT})
    assert {"job_alerts_by_look", "jobs_pkey"} <= looked.indexes
    listed = await explain(connection, query("list_alerts"), {"limit": SHOWN})
    assert {"job_alerts_breached", "jobs_pkey"} <= listed.indexes
