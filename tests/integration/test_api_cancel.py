"""DELETE /jobs/{jobId}: decided by one statement, in every state of contract.md §5, also against a racing claim."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import PARKED
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.worker import WHOLE_RING, WorkerStore
from tests.support.api import ApiCaller, running_api
from tests.support.jobs import add_job, database_now, row_of, runs_of

pytestmark = pytest.mark.store

WORKER = "w1.00000001"


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[WorkerStore]:
    clock = SystemClock()
    worker = WorkerStore(
        database_url,
        worker_id=WORKER,
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=60.0,
        statement_seconds=30.0,
    )
    yield worker
    await worker.close()


async def claim_all(worker: WorkerStore, batch: int = 500) -> set[str]:
    claims = await worker.claim(WHOLE_RING, ["noop"], batch=batch, bounds=UNBOUNDED)
    return {str(claim.id) for claim in claims}


async def test_a_due_job(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    job_id = await add_job(connection, due_in=3600)
    before = await database_now(connection)
    assert (await api.delete(f"/jobs/{job_id}")).status == 204
    shown = await api.get(f"/jobs/{job_id}")
    assert (shown["state"], shown["nextRunAt"]) == ("cancelled", None)
    row = await row_of(connection, job_id)
    assert before <= row["next_run_at"] <= await database_now(connection)  # it leaves with the day on which it ended
    assert row["revision"] == 2


@pytest.mark.parametrize("state", ["paused", "dead"])
async def test_a_job_that_is_parked(api: ApiCaller, connection: psycopg.AsyncConnection[Any], state: str) -> None:
    job_id = await add_job(connection)
    await connection.execute("update jobs set state = %s, next_run_at = %s", (state, PARKED))
    assert (await api.delete(f"/jobs/{job_id}")).status == 204
    assert (await api.get(f"/jobs/{job_id}"))["state"] == "cancelled"


async def test_a_job_in_back_off_runs_no_more(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    job_id = await add_job(connection, due_in=60, attempt=2, kept=[await database_now(connection)])
    assert (await api.delete(f"/jobs/{job_id}")).status == 204
    assert (await row_of(connection, job_id))["kept"] is None


@pytest.mark.parametrize("state", ["done", "cancelled"])
async def test_a_job_that_has_ended_is_left_as_it_is(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], state: str
) -> None:
    job_id = await add_job(connection, state=state)
    before = await row_of(connection, job_id)
    assert (await api.delete(f"/jobs/{job_id}")).status == 204
    assert (await api.delete(f"/jobs/{job_id}")).status == 204
    assert await row_of(connection, job_id) == before


async def test_a_job_that_never_was(api: ApiCaller) -> None:
    for job_id in ("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e", "nonsense", "%00", "0" * 500):
        refused = await api.delete(f"/jobs/{job_id}")
        assert (refused.status, refused["code"]) == (404, "not-found")


async def test_a_claimed_job(api: ApiCaller, connection: psycopg.AsyncConnection[Any], worker: WorkerStore) -> None:
    job_id = await add_job(connection)
    await claim_all(worker)
    before = await row_of(connection, job_id)
    refused = await api.delete(f"/jobs/{job_id}")
    assert (refused.status, refused["code"]) == (409, "job-claimed")
    run_id = f"{job_id}.{before['lease_generation']}"
    assert refused["runId"] == run_id
    assert refused["leaseOwner"] == WORKER
    assert refused["cancelUrl"] == f"/runs/{run_id}/cancel"
    shown = await api.get(f"/jobs/{job_id}")
    assert (shown["runId"], shown["leaseUntil"]) == (run_id, refused["leaseUntil"])
    assert await row_of(connection, job_id) == before


async def test_a_lapsed_lease_is_reaped_first(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], worker: WorkerStore
) -> None:
    job_id = await add_job(connection)
    await claim_all(worker)
    await connection.execute("update jobs set lease_until = now() - interval '1 second'")
    held = await row_of(connection, job_id)
    assert (await api.delete(f"/jobs/{job_id}")).status == 204
    assert (await row_of(connection, job_id))["state"] == "cancelled"
    (run,) = await runs_of(connection, job_id)
    assert (run["outcome"], run["worker_id"], run["attempt"]) == ("lost", WORKER, 1)
    assert run["lease_generation"] == held["lease_generation"]
    assert (await api.delete(f"/jobs/{job_id}")).status == 204
    assert len(await runs_of(connection, job_id)) == 1


async def test_key_and_tags_are_given_up(api: ApiCaller, connection: psycopg.AsyncConnection[Any]) -> None:
    body = {"runAt": "2100-01-01T00:00:00Z", "key": "k", "tags": ["a", "b"]}
    first = await api.post("/jobs", body)
    other = await api.post("/jobs", {**body, "key": "other"})
    assert (await api.delete(f"/jobs/{first['jobId']}")).status == 204
    keys = await (await connection.execute("select key from job_keys")).fetchall()
    tags = await (await connection.execute("select tag, job_id::text from job_tags order by tag")).fetchall()
    assert keys == [("other",)]
    assert tags == [("a", other["jobId"]), ("b", other["jobId"])]


async def test_a_key_that_has_gone_to_another_job_stays_there(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any]
) -> None:
    old = await add_job(connection, due_in=60, key="k")  # its key row was swept, and the key given to another
    new = await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z", "key": "k"})
    assert (await api.delete(f"/jobs/{old}")).status == 204
    assert (await api.post("/jobs", {"runAt": "2100-01-01T00:00:00Z", "key": "k"}))["jobId"] == new["jobId"]


async def test_A56_every_cancel_is_either_a_204_and_no_claim_or_a_409_and_a_claim(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], worker: WorkerStore
) -> None:
    ids = [str(await add_job(connection, due_in=-0.001)) for _ in range(200)]
    claimed: set[str] = set()

    statuses: dict[str, int] = {}

    async def claim_from_the_oldest() -> None:
        while batch := await claim_all(worker, batch=1):
            claimed.update(batch)

    async def cancel_from_the_newest() -> None:
        for job_id in reversed(ids):
            statuses[job_id] = (await api.delete(f"/jobs/{job_id}")).status

    await asyncio.gather(claim_from_the_oldest(), cancel_from_the_newest())
    cancelled = {job_id for job_id, status in statuses.items() if status == 204}
    refused = {job_id for job_id, status in statuses.items() if status == 409}
    assert cancelled | refused == set(ids)
    assert claimed == refused
    assert cancelled
    assert refused


async def test_a_job_that_moves_from_day_to_day_is_cancelled_once(
    api: ApiCaller, connection: psycopg.AsyncConnection[Any], database_url: str
) -> None:
    """A49: a row that changes its partition fails statements that wait for it with 40001."""
    job_id = await add_job(connection, due_in=3600)

    async def move() -> None:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as mover:
            for day in range(100):
                with contextlib.suppress(psycopg.errors.SerializationFailure):  # the cancel moved it meanwhile
                    await mover.execute(
                        "update jobs "
                        "set next_run_at = now() - interval '1 day' + make_interval(hours => 47 * (%s %% 2)) "
                        "where id = %s and state = 'due'",
                        (day, job_id),
                    )

    async def look() -> None:
        for _ in range(50):
            assert (await api.get(f"/jobs/{job_id}")).status == 200

    async def cancel() -> int:
        await asyncio.sleep(0)
        return (await api.delete(f"/jobs/{job_id}")).status

    statuses = (await asyncio.gather(move(), look(), *(cancel() for _ in range(10))))[2:]
    assert set(statuses) == {204}
    assert (await row_of(connection, job_id))["state"] == "cancelled"
