"""Trigger, redrive, cancel a run, cancel after the current one, explain, and what the bell is rung for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import psycopg
import pytest

from ringcron.bell import decode_bell
from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import PARKED, Claim, RunOutcome
from ringcron.store.acting import REDRIVE_BATCH
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.link import Link
from ringcron.store.worker import WHOLE_RING, WorkerStore
from tests.support.api import ApiCaller, running_api
from tests.support.completing import finish
from tests.support.jobs import add_job, add_many, row_of, runs_of, skips_of
from tests.support.waiting import until

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]
WORKER = "w-1.00000001"
FUTURE = "2100-01-01T00:00:00Z"
NOBODY = "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e"


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
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


@pytest.fixture
async def bells(database_url: str) -> AsyncIterator[list[str]]:
    """What a listening worker hears."""
    heard: list[str] = []
    link = Link(database_url, application_name="listener", seconds=5, on_bell=heard.append)
    async with link.connection() as connection:
        await connection.execute("select 1")
    yield heard
    await link.close()


async def claim_one(worker: WorkerStore) -> Claim:
    (claim,) = await worker.claim(WHOLE_RING, ["noop"], batch=10, bounds=UNBOUNDED)
    return claim


async def kill(connection: Connection, *job_ids: UUID) -> None:
    """The jobs are dead."""
    await connection.execute(
        "update jobs set state = 'dead', next_run_at = %s, dead_reason = 'boom', attempt = 5 where id = any(%s)",
        (PARKED, list(job_ids)),
    )


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_trigger_runs_a_job_now_and_leaves_its_instant(
    api: ApiCaller, connection: Connection, worker: WorkerStore
) -> None:
    job_id = await add_job(connection, due_in=3600)
    triggered = await api.post(f"/jobs/{job_id}/trigger", None)
    assert triggered.status == 202
    assert at(triggered["nextRunAt"]) <= datetime.now(UTC) + timedelta(seconds=1)
    claim = await claim_one(worker)
    assert (await api.get(f"/jobs/{job_id}/runs")).body[0]["cause"] == "manual"
    await finish(worker, claim)
    after = await api.get(f"/jobs/{job_id}")
    assert (after["state"], after["nextRunAt"]) == ("due", after["runAt"])


@pytest.mark.parametrize("state", ["done", "cancelled", "dead"])
async def test_what_is_over_cannot_be_triggered(api: ApiCaller, connection: Connection, state: str) -> None:
    job_id = await add_job(connection, state="done" if state == "dead" else state)
    if state == "dead":
        await kill(connection, job_id)
    refused = await api.post(f"/jobs/{job_id}/trigger", None)
    assert (refused.status, refused["code"], refused["state"]) == (409, "wrong-state", state)


@pytest.mark.parametrize("act", ["trigger", "redrive"])
async def test_acts_on_no_job(api: ApiCaller, act: str) -> None:
    for job_id in (NOBODY, "nonsense"):
        assert (await api.post(f"/jobs/{job_id}/{act}", None)).status == 404
        assert (await api.get(f"/jobs/{job_id}/explain")).status == 404
        assert (await api.delete(f"/jobs/{job_id}", afterCurrent="true")).status == 404


async def test_redrive_of_one(api: ApiCaller, connection: Connection) -> None:
    job_id = await add_job(connection, schedule={"every": "PT1H", "anchor": "2020-01-01T00:30:00Z"})
    await connection.execute("update jobs set decided_until = now() - interval '150 minutes'")
    refused = await api.post(f"/jobs/{job_id}/redrive", None)
    assert (refused.status, refused["code"], refused["state"]) == (409, "wrong-state", "due")
    await kill(connection, job_id)

    redriven = await api.post(f"/jobs/{job_id}/redrive", None)

    assert (redriven.status, redriven["state"], redriven["attempt"], redriven["deadReason"]) == (202, "due", 0, None)
    assert (await row_of(connection, job_id))["cause"] == "redrive"
    (skip,) = await skips_of(connection, job_id)
    assert (skip["reason"], skip["count"]) in {("dead", 2), ("dead", 3)}


async def test_redrive_of_many_by_handler_and_tag_oldest_first(api: ApiCaller, connection: Connection) -> None:
    made = [(await api.post("/jobs", {"runAt": FUTURE, "handler": "h", "tags": ["t"]}))["jobId"] for _ in range(4)]
    other = [
        (await api.post("/jobs", {"runAt": FUTURE, "handler": "other", "tags": ["t"]}))["jobId"],
        (await api.post("/jobs", {"runAt": FUTURE, "handler": "h", "tags": ["u"]}))["jobId"],
    ]
    await kill(connection, *map(UUID, made + other))

    some = await api.call("POST", "/jobs/redrive?handler=h&tag=t&limit=3")

    assert (some.status, some["count"]) == (202, 3)
    states = [(await api.get(f"/jobs/{job_id}"))["state"] for job_id in made + other]
    assert states == ["due", "due", "due", "dead", "dead", "dead"]
    assert (await api.call("POST", "/jobs/redrive"))["count"] == 3
    nothing = await api.call("POST", "/jobs/redrive")
    assert (nothing["count"], nothing["lastAt"]) == (0, None)


async def test_redrive_of_many_is_paced_over_its_batches(api: ApiCaller, connection: Connection) -> None:
    count = REDRIVE_BATCH + 20
    await add_many(connection, count)
    await connection.execute("update jobs set state = 'dead', next_run_at = %s", (PARKED,))
    before = datetime.now(UTC)

    answer = await api.call("POST", "/jobs/redrive?limit=10000&perSecond=50")

    assert answer["count"] == count
    cursor = await connection.execute("select next_run_at from jobs where state = 'due' order by next_run_at")
    instants = [row[0] for row in await cursor.fetchall()]
    assert instants[-1] == at(answer["lastAt"])
    planned = timedelta(seconds=(count - 1) / 50)
    assert before + planned - timedelta(seconds=1) <= instants[-1] <= datetime.now(UTC) + planned
    late = [later - earlier for earlier, later in pairwise(instants) if earlier > datetime.now(UTC)]
    assert {round(gap / timedelta(milliseconds=1)) for gap in late} == {20}


async def test_acts_with_an_idempotency_key_are_done_once(
    api: ApiCaller, connection: Connection, bells: list[str]
) -> None:
    job_id = await add_job(connection, due_in=3600)
    await kill(connection, job_id)
    headers = {"Idempotency-Key": "once"}
    for path in (f"/jobs/{job_id}/redrive", "/jobs/redrive?limit=5", f"/jobs/{job_id}/trigger"):
        first = await api.call("POST", path, headers=headers)
        again = await api.call("POST", path, headers=headers)
        assert (first.status, again.status, again.body) == (202, 202, first.body), path
        assert again.headers["Idempotency-Replayed"] == "true"
    await until(lambda: bells, what="the bell, after the commit")


async def test_redrive_writes_the_skips_of_the_dead_time_and_minds_no_schedule_that_cannot_be_read(
    api: ApiCaller, connection: Connection
) -> None:
    recurring = await add_job(connection, schedule={"every": "PT1H", "anchor": "2020-01-01T00:30:00Z"})
    spoilt = await add_job(connection, schedule={"every": "soon"})
    await connection.execute("update jobs set decided_until = now() - interval '150 minutes'")
    await kill(connection, recurring, spoilt)
    assert (await api.call("POST", "/jobs/redrive"))["count"] == 2
    (skip,) = await skips_of(connection, recurring)
    assert (skip["reason"], skip["count"]) in {("dead", 2), ("dead", 3)}
    assert await skips_of(connection, spoilt) == []
    row = await row_of(connection, recurring)
    assert (row["state"], row["attempt"], row["cause"], row["dead_reason"]) == ("due", 0, "redrive", None)
    assert skip["last"] < row["decided_until"]


async def test_faults_of_a_redrive(api: ApiCaller) -> None:
    refused = await api.call("POST", "/jobs/redrive?limit=10001&perSecond=-1&handlr=x")
    assert refused.faults == {"/limit": "out-of-range", "/perSecond": "type", "/handlr": "unknown-parameter"}


async def test_cancel_of_a_run(api: ApiCaller, connection: Connection, worker: WorkerStore, bells: list[str]) -> None:
    job_id = await add_job(connection)
    claim = await claim_one(worker)

    asked = await api.post(f"/runs/{claim.run_id}/cancel", None)

    assert asked.status == 202
    assert asked.body == {"runId": claim.run_id, "workerId": WORKER}
    assert (await worker.renew_leases([claim])).held == {(job_id, claim.lease_generation): True}
    await until(lambda: bells, what="the bell")
    assert decode_bell(bells[0]).cancels == {(job_id, claim.lease_generation)}
    assert "was asked to stop it" in (await api.get(f"/jobs/{job_id}/explain"))["sentence"]

    await finish(worker, claim, RunOutcome.CANCELLED)
    over = await api.post(f"/runs/{claim.run_id}/cancel", None)
    assert (over.status, over["code"]) == (409, "run-finished")
    assert (await api.get(f"/jobs/{job_id}"))["state"] == "cancelled"


async def test_a_run_that_was_finished_first_keeps_its_outcome(
    api: ApiCaller, connection: Connection, worker: WorkerStore
) -> None:
    job_id = await add_job(connection)
    claim = await claim_one(worker)
    await api.post(f"/runs/{claim.run_id}/cancel", None)
    await finish(worker, claim)
    assert [run["outcome"] for run in await runs_of(connection, job_id)] == ["succeeded"]
    assert (await api.get(f"/jobs/{job_id}"))["state"] == "done"


async def test_an_older_run_is_finished_while_a_newer_one_goes_on(
    api: ApiCaller, connection: Connection, worker: WorkerStore
) -> None:
    job_id = await add_job(connection)
    first = await claim_one(worker)
    await finish(worker, first, RunOutcome.FAILED)
    await connection.execute("update jobs set next_run_at = now()")
    second = await claim_one(worker)
    assert (await api.post(f"/runs/{first.run_id}/cancel", None)).status == 409
    assert not (await row_of(connection, job_id))["cancel_requested"]
    assert (await api.post(f"/runs/{second.run_id}/cancel", None)).status == 202


async def test_a_run_that_never_was(api: ApiCaller, connection: Connection, worker: WorkerStore) -> None:
    job_id = await add_job(connection)
    claim = await claim_one(worker)
    for run_id in (
        f"{job_id}.{claim.lease_generation + 1}",
        f"{NOBODY}.1",
        f"{job_id}.0",
        f"{job_id}.9223372036854775808",
        f"{job_id}.",
        str(job_id),
        "nonsense",
        "-" * 36 + ".1",
    ):
        refused = await api.post(f"/runs/{run_id}/cancel", None)
        assert (refused.status, refused["code"]) == (404, "not-found"), run_id


async def test_cancel_after_the_current_run(api: ApiCaller, connection: Connection, worker: WorkerStore) -> None:
    job_id = await add_job(connection, schedule={"every": "PT1H", "anchor": "2020-01-01T00:00:00Z"})
    claim = await claim_one(worker)
    assert (await api.delete(f"/jobs/{job_id}")).status == 409

    waiting = await api.delete(f"/jobs/{job_id}", afterCurrent="true")

    assert (waiting.status, waiting["state"], waiting["runId"]) == (202, "claimed", claim.run_id)
    assert (await api.delete(f"/jobs/{job_id}", afterCurrent="true")).status == 202
    explained = await api.get(f"/jobs/{job_id}/explain")
    assert (explained["code"], explained["fields"]["waits"]) == ("change-waits", ["cancel"])
    await finish(worker, claim, RunOutcome.FAILED)
    assert (await api.get(f"/jobs/{job_id}"))["state"] == "cancelled"
    assert (await api.delete(f"/jobs/{job_id}", afterCurrent="true")).status == 204


async def test_cancel_after_the_current_run_where_there_is_none(api: ApiCaller, connection: Connection) -> None:
    created = await api.post("/jobs", {"runAt": FUTURE, "key": "k", "tags": ["t"]})
    assert (await api.delete(f"/jobs/{created['jobId']}", afterCurrent="true")).status == 204
    assert (await api.get(f"/jobs/{created['jobId']}"))["state"] == "cancelled"
    for table in ("job_keys", "job_tags"):
        assert await (await connection.execute(f"select * from {table}".encode())).fetchall() == []


async def test_explain(api: ApiCaller, connection: Connection, worker: WorkerStore) -> None:
    """Issue 3, item 6, as far as a table without a worker shows it; each reason is a unit test."""
    ahead = await add_job(connection, due_in=3600)
    found = await api.get(f"/jobs/{ahead}/explain")
    assert (found["code"], found["fields"]["workers"], found["state"]) == ("no-worker", 0, "due")
    await report(connection)
    found = await api.get(f"/jobs/{ahead}/explain")
    assert (found["code"], found["fields"]["nextRunAt"]) == ("not-due", (await api.get(f"/jobs/{ahead}"))["nextRunAt"])
    assert 3590 < found["fields"]["secondsLeft"] < 3601

    late = await add_job(connection, due_in=-30)
    found = await api.get(f"/jobs/{late}/explain")
    assert (found["code"], found["fields"]["worker"], found["fields"]["sliceDue"]) == ("slice-lags", WORKER, 1)
    assert found["fields"]["sliceLagSeconds"] >= 30

    claim = await claim_one(worker)
    found = await api.get(f"/jobs/{late}/explain")
    assert (found["code"], found["fields"]["leaseOwner"]) == ("claimed", WORKER)
    await finish(worker, claim, RunOutcome.FAILED)
    found = await api.get(f"/jobs/{late}/explain")
    assert (found["code"], found["fields"]["attempt"], found["fields"]["maxAttempts"]) == ("back-off", 1, 5)

    await api.patch(f"/jobs/{late}", {"paused": True, "pauseReason": "the move"})
    found = await api.get(f"/jobs/{late}/explain")
    assert found["sentence"] == "It was paused by anonymous (the move); nothing starts until it is resumed."
    await api.delete(f"/jobs/{late}")
    assert (await api.get(f"/jobs/{late}/explain"))["code"] == "cancelled"


async def report(connection: Connection) -> None:
    """A worker that says it owns the whole ring."""
    slices = '[{"handlers": ["noop"], "arcs": [[0, 4095]]}]'
    await connection.execute(
        """
        insert into workers (worker_id, name, capacity, running, handlers, version, tzdata, epoch, draining, slices,
                             seen_at)
        values (%s, 'w-1', 10, 0, '{noop}', '0', '0', 1, false, %s, now())
        """,
        (WORKER, slices),
    )


async def test_the_bell_is_rung_for_what_is_due_soon_and_for_nothing_else(
    api: ApiCaller, connection: Connection, bells: list[str]
) -> None:
    async def slots() -> set[int]:
        """The slots of the next bell."""
        await until(lambda: bells, what="the bell")
        return set(decode_bell(bells.pop(0)).slots or ())

    await api.post("/jobs", {"runAt": FUTURE})
    await api.post("/jobs", {"runAt": "tomorrow"})
    job = await api.post("/jobs", {"runAt": "2020-01-01T00:00:00Z"})
    assert await slots() == {job["slot"]}

    await api.patch(f"/jobs/{job['jobId']}", {"paused": True})
    await api.patch(f"/jobs/{job['jobId']}", {"paused": False})
    assert await slots() == {job["slot"]}

    later = await api.post("/jobs", {"runAt": FUTURE})
    await api.patch(f"/jobs/{later['jobId']}", {"name": "x"})
    await api.post(f"/jobs/{later['jobId']}/trigger", None)
    assert await slots() == {later["slot"]}

    await kill(connection, UUID(later["jobId"]), UUID(job["jobId"]))
    await api.post(f"/jobs/{later['jobId']}/redrive", None)
    assert await slots() == {later["slot"]}
    await api.call("POST", "/jobs/redrive")
    assert await slots() == {job["slot"]}
    assert bells == []


async def test_twenty_redrives_of_one_job_are_one(api: ApiCaller, connection: Connection) -> None:
    job_id = await add_job(connection)
    await kill(connection, job_id)
    answers = await asyncio.gather(*(api.post(f"/jobs/{job_id}/redrive", None) for _ in range(20)))
    assert sorted(answer.status for answer in answers) == [202] + [409] * 19
    assert (await row_of(connection, job_id))["state"] == "due"
