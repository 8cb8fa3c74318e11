"""GET /jobs/{jobId}/runs and /skips: newest first, the run in progress first, the next page in the header Link."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support.api import Answer, ApiCaller, running_api
from tests.support.days import carve_days
from tests.support.jobs import add_job, database_now

pytestmark = pytest.mark.store


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        now = await database_now(connection)
        await carve_days(connection, "runs", now, before=5, after=3)
        await carve_days(connection, "skips", now, before=5, after=3)
        yield connection


@pytest.fixture
async def api(connection: object, database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


async def add_run(
    connection: psycopg.AsyncConnection[Any], job_id: UUID, generation: int, at: datetime, outcome: str = "failed"
) -> None:
    await connection.execute(
        "insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id, started_at, "
        "finished_at, outcome, error, result) values (%s, %s, %s, %s, %s, 'schedule', 'w.1', %s, %s, %s, 'e', '[1]')",
        (job_id, generation, at, generation, at, at, at + timedelta(seconds=1), outcome),
    )


async def walk(api: ApiCaller, path: str, limit: int) -> list[Any]:
    """Every element, page by page, as the header Link leads."""
    found: list[Any] = []
    following: str | None = f"{path}?limit={limit}"
    while following is not None:
        answer = await api.call("GET", following)
        assert answer.status == 200, answer
        found += answer.body
        following = next_of(answer)
    return found


def next_of(answer: Answer) -> str | None:
    if "Link" not in answer.headers:
        return None
    link = re.fullmatch(r'<([^>]+)>; rel="next"', answer.headers["Link"])
    assert link is not None
    return link[1]


async def test_no_run_yet(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    job_id = await add_job(connection)
    for kind in ("runs", "skips"):
        answer = await api.get(f"/jobs/{job_id}/{kind}")
        assert (answer.status, answer.body) == (200, [])
        assert "Link" not in answer.headers


async def test_a_job_that_never_was(api: ApiCaller) -> None:
    for kind in ("runs", "skips"):
        for job_id in ("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e", "x", "ffffffff-ffff-ffff-ffff-ffffffffffff"):
            assert (await api.get(f"/jobs/{job_id}/{kind}")).status == 404


async def test_runs_newest_first_over_several_days_and_the_one_in_progress_before_them(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    job_id = await add_job(connection)
    now = await database_now(connection)
    for generation in range(1, 8):
        await add_run(connection, job_id, generation, now - timedelta(hours=2 * (8 - generation)))
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w.2', lease_generation = 8, attempt = 3, "
        "claimed_at = now(), lease_until = now() + interval '1 minute' where id = %s",
        (job_id,),
    )
    for limit in (1, 3, 100):
        runs = await walk(api, f"/jobs/{job_id}/runs", limit)
        assert [run["leaseGeneration"] for run in runs] == [8, 7, 6, 5, 4, 3, 2, 1]
    running, ended = runs[0], runs[1]
    assert (running["finishedAt"], running["outcome"], running["workerId"], running["attempt"]) == (
        None,
        None,
        "w.2",
        3,
    )
    assert running["runId"] == f"{job_id}.8"
    assert (ended["outcome"], ended["error"], ended["result"]) == ("failed", "e", [1])
    assert ended["startedAt"] < ended["finishedAt"]


async def test_runs_outlive_their_job(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    job_id = await add_job(connection)
    await add_run(connection, job_id, 1, await database_now(connection))
    await connection.execute("delete from jobs")
    assert (await api.get(f"/jobs/{job_id}")).status == 404
    assert [run["runId"] for run in (await api.get(f"/jobs/{job_id}/runs")).body] == [f"{job_id}.1"]


async def test_runs_of_another_job_are_not_shown(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    one, other = await add_job(connection), await add_job(connection)
    await add_run(connection, other, 1, await database_now(connection))
    assert (await api.get(f"/jobs/{one}/runs")).body == []


async def test_skips(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    job_id = await add_job(connection)
    now = (await database_now(connection)).replace(microsecond=0)
    for hour in range(5):
        first = now + timedelta(hours=hour)
        await connection.execute(
            "insert into skips (job_id, decided_at, first, last, count, reason) values (%s, %s, %s, %s, 2, 'missed')",
            (job_id, first, first, first + timedelta(minutes=30)),
        )
    for limit in (1, 2, 100):
        skips = await walk(api, f"/jobs/{job_id}/skips", limit)
        assert [datetime.fromisoformat(skip["from"]) for skip in skips] == [
            now + timedelta(hours=hour) for hour in (4, 3, 2, 1, 0)
        ]
    assert (skips[0]["count"], skips[0]["reason"]) == (2, "missed")


async def test_a_cursor_belongs_to_its_job(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    one, other = await add_job(connection), await add_job(connection)
    for generation in (1, 2):
        await add_run(connection, one, generation, await database_now(connection))
    link = next_of(await api.call("GET", f"/jobs/{one}/runs?limit=1"))
    assert link is not None
    assert (await api.call("GET", link.replace(str(one), str(other)))).status == 400
    assert (await api.call("GET", link.replace("/runs", "/skips"))).status == 400
