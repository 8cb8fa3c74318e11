"""GET /shards and /workers, from what workers report; /healthz, /readyz, /metrics and the document."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import Arc, Slice
from ringcron.store.worker import WorkerStore
from ringcron_sql.migrate import migrate, required_version
from tests.support.api import DOCUMENT, ApiCaller, running_api
from tests.support.jobs import add_job
from tests.support.values import report_of


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def report(url: str, worker_id: str, *arcs: tuple[int, int], **columns: Any) -> None:
    clock = SystemClock()
    store = WorkerStore(
        url,
        worker_id=worker_id,
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=15,
        statement_seconds=10,
    )
    held = Slice(handlers=("noop",), arcs=tuple(Arc(lo=lo, hi=hi) for lo, hi in arcs))
    try:
        await store.report_worker(report_of(worker_id, handlers=("noop",), slices=(held,), **columns))
    finally:
        await store.close()


async def test_shards(api: ApiCaller, connection: psycopg.AsyncConnection[Any], database_url: str) -> None:
    await report(database_url, "a.1", (0, 99), epoch=3, running=2)
    await report(database_url, "b.1", (200, 4095), epoch=2)
    await add_job(connection, due_in=-5, slot=50)
    await add_job(connection, due_in=-9, slot=50)
    await add_job(connection, due_in=-1, slot=150)
    await add_job(connection, due_in=-60, slot=10, handler="nobody")
    await add_job(connection, due_in=60, slot=20)
    shards = await api.get("/shards")
    assert [(item["worker"], item["arcs"], item["due"], item["running"]) for item in shards["items"]] == [
        ("a.1", [[0, 99]], 2, 2),
        ("b.1", [[200, 4095]], 0, 0),
    ]
    assert 9 <= shards["items"][0]["lagSeconds"] < 60
    assert [(row["slot"], row["due"]) for row in shards["slots"]] == [(50, 2), (150, 1)]
    assert shards["unowned"] == [[100, 199]]
    assert shards["epoch"] == 3
    assert (await api.get("/shards")).body == shards.body  # read once a second


async def test_with_no_worker_everything_that_waits_shows(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    await add_job(connection, due_in=-60, slot=10, handler="nobody")
    shards = await api.get("/shards")
    assert (shards["items"], shards["unowned"], shards["epoch"]) == ([], [[0, 4095]], 0)
    assert [(row["slot"], row["due"]) for row in shards["slots"]] == [(10, 1)]


async def test_workers(api: ApiCaller, connection: psycopg.AsyncConnection[Any], database_url: str) -> None:
    for number in range(5):
        await report(database_url, f"w{number}.1", (0, 4095), draining=number == 0)
    await connection.execute("update workers set seen_at = now() - interval '16 seconds' where worker_id = 'w3.1'")
    page = await api.get("/workers", limit=3)
    assert [worker["workerId"] for worker in page["items"]] == ["w0.1", "w1.1", "w2.1"]
    assert (page["items"][0]["draining"], page["items"][0]["name"], page["items"][0]["handlers"]) == (
        True,
        "w0",
        ["noop"],
    )
    rest = await api.get("/workers", limit=3, cursor=page["nextCursor"])
    assert [worker["workerId"] for worker in rest["items"]] == ["w4.1"]
    assert rest["nextCursor"] is None


async def test_ready(api: ApiCaller) -> None:
    assert (await api.get("/healthz")).body == {"ok": True}
    # The template database is migrated by file, so the version is recorded only where `migrate` ran.
    assert (await api.get("/readyz")).status in (200, 503)


async def test_ready_once_the_schema_is_there(empty_database_url: str) -> None:
    async with running_api(empty_database_url) as api:
        refused = await api.get("/readyz")
        assert (refused.status, refused["code"]) == (503, "store-unavailable")
        assert "ringcron migrate" in refused["detail"]
        assert refused.headers["Retry-After"]
        assert (await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z"})).status == 503
        await migrate(empty_database_url)
        assert (await api.get("/readyz")).body == {"ready": True, "schemaVersion": required_version()}
        assert (await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z"})).status == 201


async def test_metrics_count_by_route(api: ApiCaller) -> None:
    await api.get("/jobs/019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e")
    await api.get("/nowhere")
    answer = await api.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert 'ringcron_http_requests_total{method="GET",route="/jobs/{jobId}",status="404"}' in answer.body
    assert 'route="unmatched",status="404"' in answer.body
    assert "019f3a52" not in answer.body


async def test_the_document_and_the_page(api: ApiCaller) -> None:
    assert (await api.get("/openapi.json")).body == DOCUMENT
    page = await api.get("/docs")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "Jobs must be idempotent" in page.body
