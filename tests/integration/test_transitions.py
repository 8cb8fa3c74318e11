"""The transition table of contract.md §5, row by row, on a real PostgreSQL; test_transition_races.py has them meet."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from ringcron import changes
from ringcron.changes import Change
from ringcron.clock import DatabaseClock, SystemClock
from ringcron.errors import JobAlreadyClaimed, WrongState
from ringcron.models import Arc, Cause, Claim, Definition, Job, RunOutcome
from ringcron.slots import new_job_id
from ringcron.store.acting import DeadFilter
from ringcron.store.api import SESSION_OPTIONS, ApiStore
from ringcron.store.batching import create_each
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.changing import change_job
from ringcron.store.creating import Creation, OnConflict
from ringcron.store.pool import Pool
from ringcron.store.worker import WorkerStore
from tests.support.completing import finish
from tests.support.jobs import add_job, database_now, row_of, runs_of, skips_of

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def worker(database_url: str) -> AsyncIterator[WorkerStore]:
    clock = SystemClock()
    store = WorkerStore(
        database_url,
        worker_id="w.1",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=15,
        statement_seconds=10,
    )
    yield store
    await store.close()


async def claim_all(worker: WorkerStore) -> list[Claim]:
    return await worker.claim(Arc(lo=0, hi=4095), ["noop"], batch=10, bounds=UNBOUNDED)


async def recurring(connection: Connection, **columns: Any) -> UUID:
    """An hourly job whose next tick is half an hour ahead and whose ticks of the last hours are decided."""
    now = await database_now(connection)
    anchor = now.replace(microsecond=0) + timedelta(minutes=30)
    job_id = await add_job(
        connection,
        due_in=(anchor - now).total_seconds(),
        scheduled_for=anchor,
        schedule={"every": "PT1H", "anchor": anchor.isoformat().replace("+00:00", "Z")},
    )
    await connection.execute(
        "update jobs set next_run_at = %s, scheduled_for = %s, decided_until = now() where id = %s",
        (anchor, anchor, job_id),
    )
    for name, value in columns.items():
        await connection.execute(f"update jobs set {name} = %s where id = %s", (value, job_id))
    return job_id


def pausing(job: Job, now: datetime) -> Change:
    return changes.pause(job, now, reason="maintenance", by="me")


def patching(**moved: Any) -> Callable[[Job, datetime], Change]:
    """A patch of the definition's fields; `after_current` as given."""
    after_current = moved.pop("after_current", False)
    return lambda job, now: changes.patch(
        job, dataclasses.replace(job.definition, **moved), now, after_current=after_current
    )


async def park(connection: Connection, job_id: UUID, state: str, hours_ago: float) -> None:
    """The job has been parked for a while; its ticks since then are undecided."""
    await connection.execute(
        """
        update jobs set state = %s, next_run_at = '9500-01-01Z', dead_reason = case when %s = 'dead' then 'boom' end,
               scheduled_for = scheduled_for - make_interval(hours => 3),
               decided_until = now() - make_interval(secs => %s)
        where id = %s
        """,
        (state, state, hours_ago * 3600, job_id),
    )


async def test_pause_and_resume_of_a_recurring_job_skip_what_passed(connection: Connection) -> None:
    job_id = await recurring(connection)
    paused, change = await change_job(connection, job_id, pausing)
    assert (paused.state, paused.pause_reason, paused.paused_by, change.waits) == ("paused", "maintenance", "me", False)
    assert (await row_of(connection, job_id))["next_run_at"].year == 9500
    await park(connection, job_id, "paused", 2.6)

    resumed, _ = await change_job(connection, job_id, changes.resume)

    (skip,) = await skips_of(connection, job_id)
    assert (skip["reason"], skip["count"]) == ("paused", 3)
    assert resumed.state == "due"
    assert resumed.next_run_at == resumed.scheduled_for > await database_now(connection)
    assert resumed.pause_reason is None


@pytest.mark.parametrize("how", ["pause, resume", "patch", "replace", "redrive", "redrive many"])
async def test_ticks_of_a_claim_that_was_never_settled_are_skipped(
    connection: Connection, worker: WorkerStore, database_url: str, how: str
) -> None:
    """A claim moves decided_until; whether it was handed back or lost, nothing after its tick was told."""
    job_id = await recurring(connection)
    first = (await row_of(connection, job_id))["scheduled_for"] - timedelta(hours=3)
    await connection.execute(
        "update jobs set scheduled_for = %s, next_run_at = %s, decided_until = %s, key = 'k' where id = %s",
        (first, first, first - timedelta(minutes=1), job_id),
    )
    await connection.execute("insert into job_keys (key, job_id) values ('k', %s)", (job_id,))
    assert await claim_all(worker)
    if "redrive" in how:  # convicted: three attempts were lost before any of them was settled
        await connection.execute(
            "update jobs set state = 'dead', next_run_at = '9500-01-01Z', dead_reason = 'lost', lease_owner = null,"
            " lease_until = null, claimed_at = null where id = %s",
            (job_id,),
        )
    else:
        await change_job(connection, job_id, pausing)
        assert await worker.release_unknown_claims([]) == [job_id]
        assert (await row_of(connection, job_id))["state"] == "paused", "the pause waited for the run"
    match how:
        case "pause, resume":
            await change_job(connection, job_id, changes.resume)
        case "patch":
            moved = {"every": "PT2H", "anchor": "2026-01-01T00:00:00Z"}
            await change_job(connection, job_id, patching(schedule=moved))
        case "replace":
            await replace_by_key(connection)
        case "redrive":
            await change_job(connection, job_id, changes.redrive)
        case "redrive many":
            pool = Pool(database_url, application_name="test", max_size=1, seconds=30, options=SESSION_OPTIONS)
            wanted = DeadFilter(handler=None, tag=None, limit=5)
            assert len(await ApiStore(pool, clock=SystemClock()).redrive_jobs(wanted, per_second=None)) == 1
            await pool.close()
    (skip,) = await skips_of(connection, job_id)
    begun = "redrive" in how  # the runs of its lost attempts tell its own tick
    assert (skip["first"], skip["last"], skip["count"]) == (first + HOUR * begun, first + 2 * HOUR, 3 - begun)


@pytest.mark.parametrize(
    "how", ["patch", "patch after current", "replace", "handed back, patch", "handed back, replace"]
)
async def test_ticks_that_wait_their_turn_are_told_when_the_schedule_goes(
    connection: Connection, worker: WorkerStore, how: str
) -> None:
    """One waits to be run, two are kept; a skip `overlap` told the fourth before, the fifth passed since."""
    job_id = await recurring(connection)
    first = (await row_of(connection, job_id))["scheduled_for"] - timedelta(hours=5)
    await connection.execute(
        "update jobs set scheduled_for = %s, next_run_at = now(), decided_until = %s, kept = %s, cause = 'buffer',"
        " key = 'k' where id = %s",
        (first, first + 3 * HOUR, [first + HOUR, first + 2 * HOUR], job_id),
    )
    await connection.execute("insert into job_keys (key, job_id) values ('k', %s)", (job_id,))
    if "handed back" in how:
        await finish(worker, (await claim_all(worker))[0], RunOutcome.INTERRUPTED)
    if how == "patch after current":
        (claim,) = await claim_all(worker)
        moved = {"every": "PT2H", "anchor": "2026-01-01T00:00:00Z"}
        await change_job(connection, job_id, patching(schedule=moved, after_current=True))
        await finish(worker, claim, now=await database_now(connection))
    elif "patch" in how:
        await change_job(connection, job_id, patching(schedule={"every": "PT2H", "anchor": "2026-01-01T00:00:00Z"}))
    else:
        await replace_by_key(connection)
    run = how != "patch" and how != "replace"  # its run tells the first
    skips = sorted(await skips_of(connection, job_id), key=lambda skip: skip["first"])
    assert [(skip["first"], skip["last"], skip["count"], skip["reason"]) for skip in skips] == [
        (first + HOUR * run, first + 2 * HOUR, 3 - run, "rescheduled"),
        (first + 4 * HOUR, first + 4 * HOUR, 1, "rescheduled"),
    ]
    assert (await row_of(connection, job_id))["kept"] is None


async def replace_by_key(connection: Connection) -> None:
    now = await database_now(connection)
    new = Definition(handler="noop", payload=None, run_at=now + HOUR, key="k")
    create = Creation(new_job_id(now), new, now + HOUR, "k", 1, now, now + HOUR, OnConflict.REPLACE)
    await create_each(connection, [create], first_try=True)


async def test_resume_of_a_one_off_keeps_a_future_instant_and_runs_a_past_one_now(connection: Connection) -> None:
    future = await add_job(connection, due_in=60)
    past = await add_job(connection, due_in=-60)
    for job_id in (future, past):
        await change_job(connection, job_id, pausing)
    now = await database_now(connection)

    later, _ = await change_job(connection, future, changes.resume)
    at_once, _ = await change_job(connection, past, changes.resume)

    assert later.next_run_at == later.scheduled_for > now
    assert at_once.next_run_at is not None
    assert now <= at_once.next_run_at <= await database_now(connection)


async def test_resume_of_a_waiting_retry_goes_on_with_its_attempt(connection: Connection) -> None:
    job_id = await recurring(connection, attempt=2)
    await change_job(connection, job_id, pausing)
    await park(connection, job_id, "paused", 1.6)
    resumed, _ = await change_job(connection, job_id, changes.resume)
    assert (resumed.attempt, resumed.state) == (2, "due")
    assert resumed.next_run_at is not None
    assert resumed.next_run_at <= await database_now(connection)
    assert [skip["reason"] for skip in await skips_of(connection, job_id)] == ["paused"]


async def test_pause_of_a_claimed_job_waits_for_its_run(connection: Connection, worker: WorkerStore) -> None:
    job_id = await add_job(connection)
    (claim,) = await claim_all(worker)

    waiting, change = await change_job(connection, job_id, pausing)
    assert (waiting.state, change.waits) == ("claimed", True)
    assert await finish(worker, claim, RunOutcome.FAILED) == "paused"

    row = await row_of(connection, job_id)
    assert (row["state"], row["attempt"], row["pause_reason"], row["paused_by"]) == ("paused", 1, "maintenance", "me")
    assert row["after_current"] is None


async def test_trigger_of_a_future_tick_adds_a_run_and_keeps_the_tick(
    connection: Connection, worker: WorkerStore
) -> None:
    job_id = await recurring(connection)
    tick = (await row_of(connection, job_id))["scheduled_for"]

    triggered, _ = await change_job(connection, job_id, changes.trigger)
    assert (triggered.cause, triggered.attempt) == (Cause.MANUAL, 0)
    (claim,) = await claim_all(worker)
    await finish(worker, claim)

    row = await row_of(connection, job_id)
    assert (row["state"], row["scheduled_for"], row["next_run_at"], row["cause"]) == ("due", tick, tick, "schedule")


async def test_trigger_of_a_one_off_still_runs_it_at_its_instant(connection: Connection, worker: WorkerStore) -> None:
    job_id = await add_job(connection, due_in=60)
    await change_job(connection, job_id, changes.trigger)
    (claim,) = await claim_all(worker)
    await finish(worker, claim)
    row = await row_of(connection, job_id)
    assert (row["state"], row["cause"], row["next_run_at"]) == ("due", "schedule", row["run_at"])


async def test_trigger_of_a_job_in_back_off_brings_it_forward(connection: Connection) -> None:
    job_id = await add_job(connection, due_in=60, attempt=2)
    job, _ = await change_job(connection, job_id, changes.trigger)
    assert (job.cause, job.attempt) == (Cause.SCHEDULE, 2)
    assert job.next_run_at is not None
    assert job.next_run_at <= await database_now(connection)


async def test_triggers_of_a_claimed_job_become_one_run_afterwards(connection: Connection, worker: WorkerStore) -> None:
    job_id = await recurring(connection)
    await connection.execute("update jobs set next_run_at = now(), scheduled_for = now() where id = %s", (job_id,))
    (claim,) = await claim_all(worker)
    for _ in range(3):
        _, change = await change_job(connection, job_id, changes.trigger)
        assert change.waits
    await finish(worker, claim)
    (again,) = await claim_all(worker)
    assert again.cause is Cause.MANUAL
    await finish(worker, again)
    assert await claim_all(worker) == []


async def test_trigger_of_a_paused_job_runs_once_and_pauses_again(connection: Connection, worker: WorkerStore) -> None:
    job_id = await recurring(connection)
    await change_job(connection, job_id, pausing)
    await change_job(connection, job_id, changes.trigger)
    (claim,) = await claim_all(worker)
    await finish(worker, claim)
    row = await row_of(connection, job_id)
    assert (row["state"], row["pause_reason"]) == ("paused", "maintenance")


async def test_a_patch_of_the_schedule_gives_up_the_run_that_a_paused_job_was_triggered_to(
    connection: Connection,
) -> None:
    job_id = await recurring(connection)
    await change_job(connection, job_id, pausing)
    triggered, _ = await change_job(connection, job_id, changes.trigger)
    assert triggered.state == "due"
    schedule = {"every": "P1D", "anchor": "2026-01-01T00:00:00Z"}
    job, _ = await change_job(connection, job_id, patching(schedule=schedule))
    assert (job.state, job.cause, job.pause_reason, job.paused_by) == ("paused", "schedule", "maintenance", "me")
    assert job.after_current is None


async def test_a_pause_takes_back_no_other_wish(connection: Connection) -> None:
    """Its run was lost before they took effect: the trigger and the new schedule still wait for the end of the next."""
    waiting = {"trigger": True, "patch": {"schedule": None, "runAt": "2100-01-01T00:00:00Z", "tzdata": None}}
    job_id = await recurring(connection, after_current=Jsonb(waiting))
    paused, _ = await change_job(connection, job_id, pausing)
    assert paused.after_current == waiting
    triggered, _ = await change_job(connection, job_id, changes.trigger)
    assert triggered.after_current == {**waiting, "pause": {"reason": "maintenance", "by": "me"}}
    paused, _ = await change_job(connection, job_id, pausing)
    assert paused.after_current == waiting


@pytest.mark.parametrize("state", ["done", "cancelled", "dead"])
async def test_what_has_ended_cannot_be_triggered_or_paused(connection: Connection, state: str) -> None:
    job_id = await add_job(connection)
    parked = ", next_run_at = '9500-01-01Z'" if state == "dead" else ""
    await connection.execute(f"update jobs set state = %s{parked} where id = %s", (state, job_id))
    for decide in (changes.trigger, pausing):
        with pytest.raises(WrongState):
            await change_job(connection, job_id, decide)
    if state != "dead":
        with pytest.raises(WrongState):
            await change_job(connection, job_id, patching(name="x"))


async def test_patch_of_plain_fields_leaves_the_ticks_alone(connection: Connection) -> None:
    job_id = await recurring(connection, attempt=1)
    before = await row_of(connection, job_id)
    job, _ = await change_job(connection, job_id, patching(name="new", tags=("a", "b"), payload={"n": 2}))
    row = await row_of(connection, job_id)
    assert (row["name"], row["tags"], row["payload"]) == ("new", ["a", "b"], {"n": 2})
    assert (row["next_run_at"], row["attempt"], row["state"]) == (before["next_run_at"], 1, "due")
    assert row["revision"] == before["revision"] + 1 == job.revision


async def test_patch_of_the_schedule_ends_the_chain_and_skips_what_passed(connection: Connection) -> None:
    job_id = await recurring(connection, attempt=2)
    await connection.execute("update jobs set decided_until = now() - interval '150 min' where id = %s", (job_id,))
    now = await database_now(connection)
    schedule = {"every": "P1D", "anchor": (now + HOUR).isoformat()}
    job, _ = await change_job(connection, job_id, patching(schedule=schedule))
    assert (job.attempt, job.scheduled_for, job.next_run_at) == (0, now + HOUR, now + HOUR)
    (skip,) = await skips_of(connection, job_id)
    assert (skip["reason"], skip["count"]) == ("rescheduled", 2)


async def test_patch_of_the_schedule_under_a_run_is_refused_or_waits(
    connection: Connection, worker: WorkerStore
) -> None:
    job_id = await recurring(connection)
    await connection.execute("update jobs set next_run_at = now(), scheduled_for = now() where id = %s", (job_id,))
    (claim,) = await claim_all(worker)
    at = (await database_now(connection)) + 5 * HOUR
    with pytest.raises(JobAlreadyClaimed):
        await change_job(connection, job_id, patching(schedule=None, run_at=at))

    _, change = await change_job(connection, job_id, patching(schedule=None, run_at=at, after_current=True))
    assert change.waits
    await finish(worker, claim)

    row = await row_of(connection, job_id)
    assert (row["schedule"], row["run_at"], row["next_run_at"], row["state"]) == (None, at, at, "due")


async def test_cancel_after_the_current_run_starts_nothing_more(connection: Connection, worker: WorkerStore) -> None:
    job_id = await recurring(connection)
    await connection.execute("update jobs set next_run_at = now(), scheduled_for = now() where id = %s", (job_id,))
    (claim,) = await claim_all(worker)
    _, change = await change_job(connection, job_id, changes.cancel_after_current)
    assert change.waits
    assert await finish(worker, claim, RunOutcome.FAILED) == "cancelled"
    assert (await row_of(connection, job_id))["state"] == "cancelled"


async def test_cancel_after_a_run_that_is_lost_starts_nothing_more(connection: Connection, worker: WorkerStore) -> None:
    job_id = await add_job(connection)
    await claim_all(worker)
    await change_job(connection, job_id, changes.cancel_after_current)
    await connection.execute("update jobs set lease_until = now() - interval '1 s'")
    await worker.reap_leases(UNBOUNDED, expected_now=await database_now(connection))
    assert (await row_of(connection, job_id))["state"] == "cancelled"
    assert [run["outcome"] for run in await runs_of(connection, job_id)] == ["lost"]


async def test_redrive_runs_the_same_occurrence_with_all_its_attempts(connection: Connection) -> None:
    job_id = await recurring(connection, attempt=5, lost=2)
    await park(connection, job_id, "dead", 2.6)
    occurrence = (await row_of(connection, job_id))["scheduled_for"]
    job, _ = await change_job(connection, job_id, lambda job, now: changes.redrive(job, now, delay_seconds=30))
    assert (job.state, job.cause, job.attempt, job.lost, job.dead_reason) == ("due", Cause.REDRIVE, 0, 0, None)
    assert job.scheduled_for == occurrence
    assert job.next_run_at is not None
    assert job.next_run_at > await database_now(connection) + 20 * SECOND
    assert [(skip["reason"], skip["count"]) for skip in await skips_of(connection, job_id)] == [("dead", 3)]
    with pytest.raises(WrongState):
        await change_job(connection, job_id, changes.redrive)


async def test_a_lapsed_lease_is_reaped_first_and_works_with_no_worker_alive(
    connection: Connection, worker: WorkerStore
) -> None:
    job_id = await add_job(connection)
    (claim,) = await claim_all(worker)
    await connection.execute("update jobs set lease_until = now() - interval '1 s'")
    job, change = await change_job(connection, job_id, pausing)
    assert (job.state, change.reaped, job.lease_owner) == ("paused", True, None)
    assert [run["outcome"] for run in await runs_of(connection, job_id)] == ["lost"]
    assert (await worker.renew_leases([claim])).held == {}


async def test_of_a_pause_and_a_claim_each_sees_the_other(connection: Connection, worker: WorkerStore) -> None:
    """50 races: paused and never claimed, or claimed and the pause waits."""
    other = await psycopg.AsyncConnection.connect(
        connection.info.dsn, autocommit=True, password=connection.info.password
    )
    async with other:
        for _ in range(50):
            job_id = await add_job(other)
            claims, (job, change) = await asyncio.gather(claim_all(worker), change_job(connection, job_id, pausing))
            claimed = job_id in {claim.id for claim in claims}
            assert (job.state == "claimed") == change.waits == claimed
