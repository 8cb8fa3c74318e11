"""What the client does to jobs and runs: change, pause, trigger, redrive, cancel, explain; and by which key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from ringcron.api_keys import Scope
from ringcron.client import (
    Catchup,
    Client,
    Cron,
    Every,
    Forbidden,
    Job,
    JobClaimed,
    JobState,
    NewJob,
    NotFound,
    Retry,
    RunFinished,
    RunOutcome,
    TooManyRequests,
    Unauthorized,
    ValidationFailed,
    WrongState,
)
from ringcron.models import PARKED
from tests.support.api import running_api
from tests.support.jobs import add_job
from tests.support.keys import keys_of
from tests.support.programs import Programs
from tests.support.waiting import until

FAR = datetime(2100, 1, 1, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SLEEP = NewJob(run_at=LONG_AGO, handler="sleep", payload={"seconds": 600})
Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[Client]:
    async with running_api(database_url) as api, Client(api.url) as client:
        yield client


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def claimed_job(connection: Connection, **columns: Any) -> str:
    """A job whose lease the worker w.1 holds for a minute, in its third generation."""
    job_id = await add_job(connection, **columns)
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w.1', lease_until = now() + interval '1 minute',"
        " claimed_at = now(), lease_generation = 3, attempt = 1 where id = %s",
        (job_id,),
    )
    return str(job_id)


async def dead_job(connection: Connection, *, handler: str = "log") -> str:
    job_id = await add_job(connection, handler=handler)
    await connection.execute(
        "update jobs set state = 'dead', next_run_at = %s, attempt = 5, dead_reason = 'boom' where id = %s",
        (PARKED, job_id),
    )
    return str(job_id)


async def test_what_is_patched_changes_and_the_rest_stays(client: Client) -> None:
    created = await client.create_job(
        NewJob(
            schedule=Cron("@daily", max_runs=9),
            name="before",
            tags=("x",),
            payload={"keep": 1, "drop": 2},
            retry=Retry(max_attempts=7, max_lost=9),
            timeout=timedelta(seconds=5),
            catchup=Catchup.ALL,
        )
    )
    changed = await client.patch_job(
        created.job_id,
        name="after",
        payload={"drop": None, "new": 3},
        retry=Retry(max_attempts=2),
        timeout=timedelta(minutes=1),
        catchup=None,
    )
    assert changed == await client.get_job(created.job_id)
    assert (changed.name, changed.tags, changed.payload) == ("after", ("x",), {"keep": 1, "new": 3})
    assert (changed.retry.max_attempts, changed.retry.max_lost) == (2, 3)
    assert (changed.timeout, changed.catchup) == (timedelta(minutes=1), Catchup.LATEST)
    assert changed.schedule == created.schedule
    with pytest.raises(ValidationFailed) as caught:
        await client.patch_job(created.job_id, timeout=timedelta(days=999))
    assert [fault.pointer for fault in caught.value.errors] == ["/timeout"]


async def test_a_new_schedule_takes_the_place_of_the_old_one_whole(client: Client) -> None:
    job_id = (await client.create_job(NewJob(schedule=Cron("@daily", timezone="Asia/Tokyo", max_runs=9)))).job_id
    every = Every(timedelta(hours=1), anchor=FAR)
    assert (await client.patch_job(job_id, schedule=every)).schedule == every
    assert (await client.patch_job(job_id, schedule=Cron("@hourly"))).schedule == Cron("@hourly")
    once = await client.patch_job(job_id, run_at=FAR)
    assert (once.schedule, once.run_at, once.next_run_at) == (None, FAR, FAR)
    assert (await client.patch_job(job_id, schedule=Cron("@daily"))).run_at is None


async def test_a_schedule_under_a_run_waits_only_if_asked(client: Client, connection: Connection) -> None:
    job_id = await claimed_job(connection)
    with pytest.raises(JobClaimed):
        await client.patch_job(job_id, run_at=FAR)
    waiting = await client.patch_job(job_id, after_current=True, run_at=FAR)
    assert waiting.state is JobState.CLAIMED
    assert (await client.explain(job_id)).code == "change-waits"


async def test_a_paused_job_rests_until_it_is_resumed(client: Client) -> None:
    job_id = (await client.create_job(NewJob(run_at=FAR))).job_id
    paused = await client.pause(job_id, "the target is away")
    assert (paused.state, paused.next_run_at, paused.pause_reason) == (JobState.PAUSED, None, "the target is away")
    resumed = await client.resume(job_id)
    assert (resumed.state, resumed.next_run_at, resumed.pause_reason) == (JobState.DUE, FAR, None)


async def test_a_pause_under_a_run_waits(client: Client, connection: Connection) -> None:
    job_id = await claimed_job(connection)
    assert (await client.pause(job_id)).state is JobState.CLAIMED
    assert (await client.explain(job_id)).fields["waits"] == ["pause"]
    await client.resume(job_id)
    assert (await client.explain(job_id)).code == "claimed"


async def test_a_trigger_runs_now_and_keeps_the_tick(client: Client) -> None:
    job_id = (await client.create_job(NewJob(run_at=FAR))).job_id
    triggered = await client.trigger(job_id)
    assert triggered.state is JobState.DUE
    assert triggered.next_run_at is not None
    assert triggered.next_run_at <= await client.now()


async def test_what_a_state_does_not_allow_says_so(client: Client) -> None:
    job_id = (await client.create_job(NewJob(run_at=FAR))).job_id
    with pytest.raises(WrongState) as caught:
        await client.redrive(job_id)
    assert caught.value.state == "due"
    await client.cancel_job(job_id)
    for call in (client.trigger, client.pause, client.resume, client.redrive):
        with pytest.raises(WrongState) as caught:
            await call(job_id)
        assert caught.value.state == "cancelled"


async def test_a_dead_job_runs_again(client: Client, connection: Connection) -> None:
    job_id = await dead_job(connection)
    assert (await client.get_job(job_id)).dead_reason == "boom"
    redriven = await client.redrive(job_id)
    assert (redriven.state, redriven.attempt, redriven.dead_reason) == (JobState.DUE, 0, None)


async def test_many_dead_jobs_run_again_one_after_the_other(client: Client, connection: Connection) -> None:
    jobs = [await dead_job(connection, handler="log") for _ in range(3)]
    other = await dead_job(connection, handler="http")
    before = await client.now()
    redriven = await client.redrive_all(handler="log", per_second=0.1)
    assert redriven.count == 3
    assert redriven.last_at is not None
    assert redriven.last_at >= before + timedelta(seconds=20)
    assert {(await client.get_job(job_id)).state for job_id in jobs} == {JobState.DUE}
    assert (await client.get_job(other)).state is JobState.DEAD
    assert (await client.redrive_all(tag="nobody's")).count == 0
    assert (await client.redrive_all(limit=1)).count == 1


async def test_a_call_made_again_with_its_key_does_nothing_more(client: Client, connection: Connection) -> None:
    jobs = [await dead_job(connection) for _ in range(2)]
    first = await client.redrive_all(limit=1, idempotency_key="mine")
    assert await client.redrive_all(limit=1, idempotency_key="mine") == first
    assert [(await client.get_job(job_id)).state for job_id in jobs].count(JobState.DEAD) == 1


async def test_nothing_follows_the_current_run(client: Client, connection: Connection) -> None:
    job_id = await claimed_job(connection)
    assert await client.cancel_job(job_id, after_current=True) is False
    idle = (await client.create_job(NewJob(run_at=FAR))).job_id
    assert await client.cancel_job(idle, after_current=True) is True


@pytest.mark.processes
async def test_a_run_is_stopped_and_its_history_says_so(programs: Programs, client: Client, database_url: str) -> None:
    programs.worker(database_url)
    job_id = (await client.create_job(SLEEP)).job_id

    async def running() -> Job | None:
        job = await client.get_job(job_id)
        return job if job.run_id else None

    job = await until(running, seconds=30)
    assert job is not None
    assert job.run_id is not None
    assert await client.cancel_run(job.run_id) == job.lease_owner

    async def stopped() -> bool:
        return (await client.get_job(job_id)).state is JobState.CANCELLED

    await until(stopped, seconds=30)
    [run] = [run async for run in client.runs(job_id)]
    assert (run.run_id, run.outcome) == (job.run_id, RunOutcome.CANCELLED)
    with pytest.raises(RunFinished):
        await client.cancel_run(job.run_id)
    assert [entry.action async for entry in client.audit(job_id)] == ["cancel-run"]


async def test_a_run_that_nobody_has_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound):
        await client.cancel_run("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e.1")


async def test_why_a_job_has_not_run_is_explained(client: Client) -> None:
    job_id = (await client.create_job(NewJob(run_at=FAR, handler="nobodys"))).job_id
    explained = await client.explain(job_id)
    assert (explained.job_id, explained.state, explained.code) == (job_id, JobState.DUE, "no-worker")
    assert explained.fields["handler"] == "nobodys"
    assert "nobodys" in explained.sentence
    await client.pause(job_id, "lunch")
    assert "lunch" in (await client.explain(job_id)).sentence


async def test_keys_scopes_and_rates(database_url: str) -> None:
    async with running_api(database_url) as api, keys_of(database_url) as keys:
        reader, writer = await keys.add(Scope.READ), await keys.add(Scope.WRITE, name="deploy")
        slow = await keys.add(Scope.WRITE, rate=0.01, burst=1)
        async with Client(api.url) as client:
            with pytest.raises(Unauthorized):
                await client.shards()
        async with Client(api.url, "rc_no_such") as client:
            with pytest.raises(Unauthorized) as caught:
                await client.shards()
            assert "rc_no_such" not in f"{caught.value!r} {caught.value.problem}"
        async with Client(api.url, reader.reveal()) as client:
            await client.shards()
            with pytest.raises(Forbidden):
                await client.create_job(NewJob(run_at=FAR))
        async with Client(api.url, writer.reveal()) as client:
            job_id = (await client.create_job(NewJob(run_at=FAR))).job_id
            assert "deploy" in str((await client.pause(job_id)).paused_by)
            [entry] = [entry async for entry in client.audit(job_id)]
            assert (entry.action, entry.key_name) == ("pause", "deploy")
        async with Client(api.url, slow.reveal(), timeout=timedelta(seconds=5)) as client:
            with pytest.raises(TooManyRequests) as refused:
                await asyncio.gather(*(client.shards() for _ in range(3)))
            assert refused.value.retry_after_seconds is not None
