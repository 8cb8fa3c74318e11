"""The client against a real API on a real database."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import ringcron.client
from ringcron.client import (
    ApiError,
    Catchup,
    Client,
    Cron,
    Every,
    JobClaimed,
    JobState,
    KeyExists,
    NeverFires,
    NewJob,
    NotFound,
    OnExhausted,
    Overlap,
    Retry,
    RunOutcome,
    SkipReason,
    ValidationFailed,
)
from ringcron.client.transport import Request
from tests.support.api import running_api
from tests.support.jobs import add_job, database_now
from tests.support.programs import Programs
from tests.support.waiting import until

FAR = datetime(2100, 1, 1, tzinfo=UTC)
NOBODY = "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e"


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[Client]:
    async with running_api(database_url) as api, Client(api.url) as client:
        yield client


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def test_a_one_off_comes_back_as_it_was_given(client: Client) -> None:
    created = await client.create_job(
        NewJob(
            run_at=FAR,
            payload={"a": [1, 2.5, None, {"b": None}]},
            handler="log",
            key="invoice-4711",
            name="Invoice",
            tags=("x", "y"),
            retry=Retry(max_attempts=3, min_backoff=timedelta(milliseconds=250)),
            timeout=timedelta(minutes=10),
        )
    )
    assert created.created
    assert created.next_runs == (FAR,)
    job = await client.get_job(created.job_id)
    assert (job.run_at, job.next_run_at, job.scheduled_for, job.schedule) == (FAR, FAR, FAR, None)
    assert job.payload == {"a": [1, 2.5, None, {"b": None}]}
    assert (job.handler, job.key, job.name, job.tags) == ("log", "invoice-4711", "Invoice", ("x", "y"))
    assert job.retry == Retry(
        max_attempts=3,
        min_backoff=timedelta(milliseconds=250),
        max_backoff=timedelta(hours=1),
        multiplier=2.0,
        max_lost=3,
    )
    assert job.timeout == timedelta(minutes=10)
    assert (job.state, job.lease_owner, job.run_id) == (JobState.DUE, None, None)


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("0 9 * * MON-FRI", timezone="Europe/Madrid", end_at=FAR, max_runs=7),
        Every(timedelta(minutes=15), anchor=FAR - timedelta(days=30000), start_at=FAR - timedelta(days=1)),
    ],
    ids=["cron", "every"],
)
async def test_a_schedule_comes_back_as_it_was_given(client: Client, schedule: Cron | Every) -> None:
    created = await client.create_job(NewJob(schedule=schedule))
    assert created.schedule == schedule
    assert created.next_runs[0] == created.next_run_at
    assert created.run_at is None


async def test_policies_come_back_as_they_were_given(client: Client) -> None:
    created = await client.create_job(
        NewJob(
            schedule=Cron("@daily"),
            overlap=Overlap.BUFFER_ALL,
            catchup=Catchup.ALL,
            catchup_window=timedelta(days=400),
            jitter=timedelta(minutes=5),
            on_exhausted=OnExhausted.DEAD,
        )
    )
    assert (created.overlap, created.catchup) == (Overlap.BUFFER_ALL, Catchup.ALL)
    assert (created.catchup_window, created.jitter) == (timedelta(days=400), timedelta(minutes=5))
    assert created.on_exhausted is OnExhausted.DEAD


async def test_every_fault_of_a_job_is_told_at_once(client: Client) -> None:
    bad = NewJob(run_at=FAR, handler="no good", timeout=timedelta(days=999), tags=("",))
    with pytest.raises(ValidationFailed) as caught:
        await client.create_job(bad)
    assert {fault.pointer for fault in caught.value.errors} == {"/handler", "/timeout", "/tags/0"}
    assert caught.value.request_id
    with pytest.raises(NeverFires):
        await client.create_job(NewJob(schedule=Cron("0 0 30 2 *")))


async def test_a_rehearsal_stores_nothing(client: Client) -> None:
    rehearsed = await client.create_job(NewJob(schedule=Cron("@daily"), key="k"), dry_run=True)
    assert (rehearsed.created, rehearsed.key, len(rehearsed.next_runs)) == (False, "k", 10)
    assert [job async for job in client.list_jobs()] == []


async def test_the_clock_is_the_databases(client: Client, connection: psycopg.AsyncConnection[Any]) -> None:
    before = await database_now(connection)
    now = await client.now()
    assert before <= now <= await database_now(connection)


async def test_a_batch_says_what_became_of_each_job(client: Client) -> None:
    good = NewJob(run_at=FAR, key="a", payload={"text": "two\nlines \u2028"})
    first, refused, again, kept = await client.create_jobs(
        [good, NewJob(run_at=FAR, handler="no good"), good, NewJob(run_at=FAR, key="a", on_conflict="keep")]
    )
    assert (first.index, first.status, first.error) == (0, 201, None)
    assert first.job_id is not None
    assert (await client.get_job(first.job_id)).payload == {"text": "two\nlines \u2028"}
    assert first.next_run_at == FAR
    assert (refused.index, refused.status, refused.job_id) == (1, 422, None)
    assert isinstance(refused.error, ValidationFailed)
    assert [fault.pointer for fault in refused.error.errors] == ["/handler"]
    assert isinstance(again.error, KeyExists)
    assert again.error.job_id == first.job_id
    assert (kept.status, kept.job_id) == (200, first.job_id)
    assert await client.create_jobs([]) == ()


async def test_an_atomic_batch_is_stored_whole_or_not_at_all(client: Client) -> None:
    good, bad = NewJob(run_at=FAR), NewJob(run_at=FAR, handler="no good")
    with pytest.raises(ValidationFailed) as caught:
        await client.create_jobs([good, bad], atomic=True)
    assert [fault.pointer for fault in caught.value.errors] == ["/1/handler"]
    assert [job async for job in client.list_jobs()] == []
    stored = await client.create_jobs([good, good], atomic=True)
    assert [result.status for result in stored] == [201, 201]
    assert len({result.job_id for result in stored}) == 2


async def test_a_call_that_is_made_again_with_its_key_creates_nothing_more(client: Client) -> None:
    job = NewJob(run_at=FAR)
    several = await asyncio.gather(*(client.create_job(job, idempotency_key="mine") for _ in range(10)))
    assert len({created.job_id for created in several}) == 1
    batches = [await client.create_jobs([job, job], idempotency_key="mine") for _ in range(2)]
    assert batches[0] == batches[1]
    assert len([job async for job in client.list_jobs()]) == 3
    with pytest.raises(ApiError) as caught:
        await client.create_job(NewJob(run_at=FAR, name="another"), idempotency_key="mine")
    assert caught.value.code == "idempotency-key-reused"


async def test_a_schedule_is_previewed_with_its_clock_changes(client: Client) -> None:
    night = Cron("30 2 * * *", timezone="Europe/Madrid")
    after = datetime(2027, 3, 27, tzinfo=UTC)
    preview = await client.preview(night, after=after, count=3)
    assert preview.next_runs == (
        datetime(2027, 3, 27, 1, 30, tzinfo=UTC),
        datetime(2027, 3, 28, 1, 0, tzinfo=UTC),
        datetime(2027, 3, 29, 0, 30, tzinfo=UTC),
    )
    [mark] = preview.marks
    assert mark.at == preview.next_runs[1]
    assert len((await client.preview(Every(timedelta(minutes=1)))).next_runs) == 10
    with pytest.raises(NeverFires):
        await client.preview(Cron("0 0 30 2 *"))


async def test_a_key_that_is_taken_says_by_which_job(client: Client) -> None:
    first = await client.create_job(NewJob(run_at=FAR, key="k"))
    with pytest.raises(KeyExists) as caught:
        await client.create_job(NewJob(run_at=FAR, key="k"))
    assert caught.value.job_id == first.job_id
    kept = await client.create_job(NewJob(run_at=FAR, key="k", on_conflict="keep"))
    assert (kept.job_id, kept.created) == (first.job_id, False)


async def test_a_walk_sees_every_job_once_newest_first(client: Client) -> None:
    created = [(await client.create_job(NewJob(run_at=FAR, tags=("mine",)))).job_id for _ in range(7)]
    await client.create_job(NewJob(run_at=FAR))
    walked = [job.job_id async for job in client.list_jobs(tag="mine", page_size=3)]
    assert walked == created[::-1]
    pages = [page async for page in client.list_jobs(tag="mine", page_size=3).pages()]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert pages[-1].next_cursor is None
    rest = client.list_jobs(tag="mine", page_size=3, cursor=pages[0].next_cursor)
    assert [job.job_id async for job in rest] == created[3::-1]


async def test_jobs_are_found_by_every_filter(client: Client) -> None:
    soon, late = FAR, FAR + timedelta(days=1)
    first = await client.create_job(NewJob(run_at=soon, handler="a", name="one", payload=[1]))
    second = await client.create_job(NewJob(run_at=late, handler="b", name="two"))

    async def found(**filters: Any) -> list[str]:
        return [job.job_id async for job in client.list_jobs(**filters)]

    assert await found(handler="a") == await found(name="one") == await found(due_before=late) == [first.job_id]
    assert await found(due_after=late, state=JobState.DUE) == [second.job_id]
    assert await found(order="next_run_at") == [first.job_id, second.job_id]
    assert await found(state=JobState.DEAD) == []
    [listed] = [job async for job in client.list_jobs(name="one", include_payload=True)]
    assert listed.payload == [1]


async def test_a_job_in_a_list_that_no_client_can_read_spoils_nothing(
    client: Client, connection: psycopg.AsyncConnection[Any]
) -> None:
    hostile = await add_job(connection, due_in=1000, schedule={"moon": "full"})
    good = await client.create_job(NewJob(run_at=FAR))
    jobs = {job.job_id: job async for job in client.list_jobs()}
    assert jobs.keys() == {str(hostile), good.job_id}
    assert jobs[str(hostile)].schedule == {"moon": "full"}


async def test_a_cancelled_job_stays_to_be_seen(client: Client) -> None:
    job_id = (await client.create_job(NewJob(run_at=FAR))).job_id
    assert await client.cancel_job(job_id)
    assert await client.cancel_job(job_id)
    assert (await client.get_job(job_id)).state is JobState.CANCELLED


async def test_a_claimed_job_is_not_cancelled(client: Client, connection: psycopg.AsyncConnection[Any]) -> None:
    job_id = str(await claimed_job(connection))
    with pytest.raises(JobClaimed) as caught:
        await client.cancel_job(job_id)
    assert caught.value.run_id == f"{job_id}.3"
    assert caught.value.lease_owner == "w.1"
    job = await client.get_job(job_id)
    assert (job.state, job.run_id, job.lease_generation) == (JobState.CLAIMED, f"{job_id}.3", 3)
    assert job.lease_until == caught.value.lease_until


async def test_what_nobody_has_is_not_found(client: Client) -> None:
    for call in (client.get_job(NOBODY), client.cancel_job(NOBODY)):
        with pytest.raises(NotFound):
            await call
    for history in (client.runs(NOBODY), client.skips(NOBODY)):
        with pytest.raises(NotFound):
            async for _ in history:
                pass


async def test_runs_and_skips_are_walked_over_their_pages(
    client: Client, connection: psycopg.AsyncConnection[Any]
) -> None:
    job_id = str(await claimed_job(connection))
    await connection.execute(
        "insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id, started_at,"
        " finished_at, outcome, error, result)"
        " select %s, n, now(), n, now(), 'schedule', 'w.1', now(), now(), 'failed', 'boom', %s"
        " from generate_series(1, 2) n",
        (job_id, '{"n": 1}'),
    )
    await connection.execute(
        "insert into skips (job_id, decided_at, first, last, count, reason)"
        " select %s, now(), now() - n * interval '1 hour', now() - n * interval '1 hour', 1, 'paused'"
        " from generate_series(1, 5) n",
        (job_id,),
    )
    runs = [run async for run in client.runs(job_id, page_size=1)]
    assert [run.lease_generation for run in runs] == [3, 2, 1]
    assert [run.outcome for run in runs] == [None, RunOutcome.FAILED, RunOutcome.FAILED]
    assert (runs[1].error, runs[1].result) == ("boom", {"n": 1})
    skips = [skip async for skip in client.skips(job_id, page_size=2)]
    assert len(skips) == 5
    assert skips == sorted(skips, key=lambda skip: skip.first, reverse=True)
    assert {skip.reason for skip in skips} == {SkipReason.PAUSED}


async def test_the_pool_is_shown(programs: Programs, client: Client, database_url: str) -> None:
    empty = await client.shards()
    assert (empty.items, [len(arc) for arc in empty.unowned]) == ((), [4096])
    programs.worker(database_url, concurrency=3)

    async def reported() -> bool:
        return bool([worker async for worker in client.workers()])

    await until(reported, seconds=30)
    [worker] = [worker async for worker in client.workers(page_size=1)]
    assert (worker.name, worker.capacity, worker.draining) == ("w-1", 3, False)
    assert "log" in worker.handlers

    async def owned() -> bool:
        return not (await client.shards()).unowned

    await until(owned, seconds=30)
    [shard] = (await client.shards()).items
    assert shard.worker == worker.worker_id


async def test_calls_may_run_side_by_side(client: Client) -> None:
    created = await asyncio.gather(*(client.create_job(NewJob(run_at=FAR)) for _ in range(20)))
    assert len({job.job_id for job in created}) == 20


async def test_a_parameter_that_is_refused_is_named(client: Client) -> None:
    with pytest.raises(ValidationFailed) as caught:
        await client._transport.call(Request(method="GET", path="/jobs", query={"limit": "many"}))
    assert caught.value.errors[0].pointer == "/limit"


async def claimed_job(connection: psycopg.AsyncConnection[Any]) -> object:
    """A job whose lease the worker w.1 holds for a minute, in its third generation."""
    job_id = await add_job(connection)
    await connection.execute(
        "update jobs set state = 'claimed', lease_owner = 'w.1', lease_until = now() + interval '1 minute',"
        " claimed_at = now(), lease_generation = 3, attempt = 3 where id = %s",
        (job_id,),
    )
    return job_id


@pytest.mark.processes
def test_the_documented_examples_run(programs: Programs, database_url: str, tmp_path: Path) -> None:
    api = programs.api(database_url)
    readme = (Path(__file__).parents[2] / "core" / "README.md").read_text(encoding="utf-8")
    [in_readme] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    [in_docstring] = re.findall(
        r"^ *import asyncio\n.*asyncio\.run\(main\(\)\)\n", ringcron.client.__doc__, re.DOTALL | re.MULTILINE
    )
    for number, example in enumerate((in_readme, textwrap.dedent(in_docstring))):
        assert "http://127.0.0.1:8080" in example
        script = tmp_path / f"example-{number}.py"
        script.write_text(example.replace("http://127.0.0.1:8080", api.url), encoding="utf-8")
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout
    assert api.call("GET", "/jobs?tag=nightly")[1]["items"]
