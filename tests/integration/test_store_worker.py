"""Claim, fence, renew, settle, complete, reap, hand back: the statements of a worker on a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.errors import StatementRefused
from ringcron.lifecycle import after_run
from ringcron.models import Arc, Claim, RunOutcome
from ringcron.policies import settle
from ringcron.store.answers import EndedRun
from ringcron.store.bounds import UNBOUNDED, Bounds, near
from ringcron.store.claimed import Claimed, Undecodable
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.endings import decided_again
from ringcron_sql import query
from tests.support.jobs import add_job, add_many, database_now, row_of, runs_of, skips_of

pytestmark = pytest.mark.store

RING = Arc(lo=0, hi=4095)
Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


def make_store(url: str, worker_id: str = "w1.00000001", lease_seconds: float = 15.0) -> WorkerStore:
    clock = SystemClock()
    return WorkerStore(
        url,
        worker_id=worker_id,
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=lease_seconds,
        statement_seconds=10.0,
    )


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[WorkerStore]:
    store = make_store(database_url)
    yield store
    await store.close()


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[WorkerStore]:
    store = make_store(database_url, "w2.00000002")
    yield store
    await store.close()


async def claim(store: WorkerStore, **keywords: Any) -> list[Claim]:
    keywords = {"batch": 100, "bounds": UNBOUNDED, **keywords}
    return await store.claim(keywords.pop("arc", RING), keywords.pop("handlers", ["noop"]), **keywords)


async def decoded(store: WorkerStore, claims: list[Claim]) -> list[Claimed]:
    rows = await store.read_claimed(claims)
    assert all(isinstance(row, Claimed) for row in rows), rows
    return [row for row in rows if isinstance(row, Claimed)]


async def ended(
    store: WorkerStore, claims: list[Claim], outcome: RunOutcome = RunOutcome.SUCCEEDED, **keywords: Any
) -> list[EndedRun]:
    now = SystemClock().elapsed()
    return [
        EndedRun(
            claim=row.claim,
            revision=row.revision,
            outcome=outcome,
            error=keywords.get("error"),
            result=keywords.get("result"),
            started_at=now,
            finished_at=now,
            completion=after_run(
                row.going, outcome, now=row.claim.decided_until, random=0.5, error=keywords.get("error")
            ),
        )
        for row in await decoded(store, claims)
    ]


async def test_a_claim_takes_the_oldest_due_jobs_first_and_marks_them(
    store: WorkerStore, connection: Connection
) -> None:
    young = await add_job(connection, due_in=-1)
    old = await add_job(connection, due_in=-60)
    await add_job(connection, due_in=30)

    first = await claim(store, batch=1)
    rest = await claim(store)

    assert [c.id for c in first] == [old]
    assert [c.id for c in rest] == [young]
    row = await row_of(connection, old)
    assert (row["state"], row["lease_owner"], row["attempt"]) == ("claimed", "w1.00000001", 1)
    assert row["lease_generation"] == first[0].lease_generation == 1
    assert timedelta(seconds=14) < row["lease_until"] - row["claimed_at"] < timedelta(seconds=16)


async def test_small_definitions_come_with_the_claim_and_large_payloads_are_read_after_it(
    store: WorkerStore, connection: Connection
) -> None:
    small = await add_job(connection, payload={"n": 1})
    large = await add_job(connection, payload={"n": "x" * 1000})

    claims = await claim(store)
    rows = await store.definitions(claims)

    assert {c.id: c.inline is not None for c in claims} == {small: True, large: False}
    payloads = {row.claim.id: row.going.definition.payload for row in rows if isinstance(row, Claimed)}
    assert payloads == {small: {"n": 1}, large: {"n": "x" * 1000}}


async def test_a_claim_heeds_arc_handler_overdue_and_bounds(store: WorkerStore, connection: Connection) -> None:
    job = await add_job(connection, due_in=-1, slot=100)
    now = await database_now(connection)

    assert await claim(store, arc=Arc(lo=101, hi=4095)) == []
    assert await claim(store, handlers=["other"]) == []
    assert await claim(store, overdue_seconds=5.0) == []
    assert await claim(store, bounds=near(now + timedelta(days=3))) == []
    assert [c.id for c in await claim(store, arc=Arc(lo=100, hi=100), bounds=near(now))] == [job]


async def test_concurrent_claims_never_take_one_job_twice(
    store: WorkerStore, other: WorkerStore, connection: Connection
) -> None:
    await add_many(connection, 400)

    async def drain(of: WorkerStore) -> list[Claim]:
        taken: list[Claim] = []
        while came := await claim(of, batch=7):
            taken += came
        return taken

    mine, theirs = await asyncio.gather(drain(store), drain(other))

    ids = [c.id for c in mine + theirs]
    assert len(ids) == len(set(ids)) == 400


async def test_a_quarantined_job_is_left_out_of_normal_claims_and_taken_alone(
    store: WorkerStore, connection: Connection
) -> None:
    lost = await add_job(connection, lost=2)
    sound = [await add_job(connection), await add_job(connection, lost=1)]

    assert {c.id for c in await claim(store)} == set(sound)
    assert [c.id for c in await claim(store, solo=True, batch=1)] == [lost]


async def test_the_generation_carries_the_wal_timeline(store: WorkerStore, connection: Connection) -> None:
    await add_job(connection, lease_generation=41)

    claims = await claim(store)

    # On timeline 1 the number just goes up; its upper half is the timeline minus one.
    assert [c.lease_generation for c in claims] == [42]
    cursor = await connection.execute("select (timeline_id - 1)::bigint << 32 from pg_control_checkpoint()")
    assert await cursor.fetchone() == (0,)


async def test_completing_writes_the_run_and_the_next_state(store: WorkerStore, connection: Connection) -> None:
    job = await add_job(connection, payload={"n": 1})
    claims = await claim(store)

    completed = await store.complete_runs(await ended(store, claims, result=b'{"answer":42}'))

    assert len(completed.written) == 1
    row = await row_of(connection, job)
    assert (row["state"], row["lease_owner"], row["lease_until"]) == ("done", None, None)
    (run,) = await runs_of(connection, job)
    assert (run["outcome"], run["attempt"], run["result"]) == ("succeeded", 1, {"answer": 42})
    assert run["worker_id"] == "w1.00000001"
    assert run["claimed_at"] <= run["started_at"] <= run["finished_at"]


async def test_a_failed_attempt_waits_its_back_off_on_the_databases_clock(
    store: WorkerStore, connection: Connection
) -> None:
    job = await add_job(connection)
    before = await database_now(connection)

    await store.complete_runs(await ended(store, await claim(store), RunOutcome.FAILED, error="boom"))

    row = await row_of(connection, job)
    # 5 s × (0.5 + 0.5 × 0.5)
    assert (row["state"], row["attempt"]) == ("due", 1)
    assert before + timedelta(seconds=3.75) <= row["next_run_at"]
    assert (await runs_of(connection, job))[0]["error"] == "boom"
    assert await claim(store) == []


async def test_a_stale_completion_is_refused_and_says_both_generations(
    store: WorkerStore, other: WorkerStore, connection: Connection
) -> None:
    job = await add_job(connection)
    late = await ended(store, await claim(store))
    await connection.execute("update jobs set lease_until = now() - interval '1 s' where id = %s", (job,))
    reaped = await other.reap_leases(UNBOUNDED, expected_now=await database_now(connection))
    assert [lease.job_id for lease in reaped] == [job]

    before_the_next_claim = await store.complete_runs(late)
    (second,) = await claim(other)
    after_the_next_claim = await store.complete_runs(late)

    assert before_the_next_claim.written == after_the_next_claim.written == ()
    ((_, error),) = after_the_next_claim.refused
    assert (error.held_generation, error.current_generation) == (1, second.lease_generation) == (1, 2)
    row = await row_of(connection, job)
    assert (row["state"], row["lease_owner"]) == ("claimed", "w2.00000002")
    assert [run["outcome"] for run in await runs_of(connection, job)] == ["lost"]


@pytest.mark.parametrize("fault", ["generation", "owner", "state"])
async def test_every_part_of_the_fence_refuses(
    store: WorkerStore, other: WorkerStore, connection: Connection, fault: str
) -> None:
    job = await add_job(connection)
    late = await ended(store, await claim(store))
    changes = {
        "generation": "lease_generation = lease_generation + 1",
        "owner": "lease_owner = 'w2.00000002'",
        "state": "state = 'due', lease_owner = null, lease_until = null, claimed_at = null",
    }
    await connection.execute(f"update jobs set {changes[fault]} where id = %s", (job,))
    before = await row_of(connection, job)

    completed = await store.complete_runs(late)
    renewed = await store.renew_leases([late[0].claim])

    assert completed.written == ()
    assert len(completed.refused) == 1
    assert renewed.held == {}
    assert await row_of(connection, job) == before
    assert await runs_of(connection, job) == []


async def test_a_completion_sent_twice_counts_once(store: WorkerStore, connection: Connection) -> None:
    job = await add_job(connection)
    run = await ended(store, await claim(store))

    first = await store.complete_runs(run)
    again = await store.complete_runs(run)  # as after a commit whose answer was lost

    assert len(first.written) == len(again.written) == 1
    assert again.refused == ()
    assert len(await runs_of(connection, job)) == 1


async def test_a_definition_that_changed_meanwhile_is_decided_again(store: WorkerStore, connection: Connection) -> None:
    job = await add_job(connection)
    run = await ended(store, await claim(store))
    await connection.execute("update jobs set revision = revision + 1 where id = %s", (job,))

    completed = await store.complete_runs(run)

    assert (completed.written, len(completed.moved), completed.refused) == ((), 1, ())
    assert (await row_of(connection, job))["state"] == "claimed"
    assert await runs_of(connection, job) == []


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "interrupted", "succeeded"])
async def test_a_run_whose_cancel_was_accepted_before_its_end_was_written_is_not_tried_again(
    store: WorkerStore, connection: Connection, outcome: str
) -> None:
    """Its end was decided already, or a drain had stopped it: the worker looks at the row again before it writes."""
    one_off = await add_job(connection)
    recurring = await add_job(connection, schedule={"every": "PT1H", "anchor": "2026-01-01T00:00:00Z"})
    runs = await ended(store, await claim(store), RunOutcome(outcome))
    for run in runs:
        asked = {"id": run.claim.id, "generation": run.claim.lease_generation}
        cursor = await connection.execute(query("request_cancel"), asked)
        assert [row[2] for row in await cursor.fetchall()] == [True]

    moved = (await store.complete_runs(runs)).moved
    rows = {row.claim.id: row for row in await decoded(store, [run.claim for run in moved])}
    now = await database_now(connection)
    await store.complete_runs([decided_again(rows[run.claim.id], run, now) for run in moved])

    row, went_on = await row_of(connection, one_off), await row_of(connection, recurring)
    assert row["state"] == ("done" if outcome == "succeeded" else "cancelled")
    assert (went_on["state"], went_on["attempt"], went_on["cause"]) == ("due", 0, "schedule")
    assert went_on["next_run_at"] > now
    assert not went_on["cancel_requested"]
    told = {run["outcome"] for job in (one_off, recurring) for run in await runs_of(connection, job)}
    assert told == {"cancelled" if outcome == "interrupted" else outcome}


async def test_renewing_moves_the_lease_and_tells_of_a_requested_cancel(
    store: WorkerStore, connection: Connection
) -> None:
    kept = await add_job(connection)
    asked = await add_job(connection)
    claims = await claim(store)
    await connection.execute("update jobs set cancel_requested = true where id = %s", (asked,))
    await connection.execute("update jobs set lease_until = now() where state = 'claimed'")

    renewed = await store.renew_leases(claims)

    assert {token[0]: cancel for token, cancel in renewed.held.items()} == {kept: False, asked: True}
    assert (await row_of(connection, kept))["lease_until"] > await database_now(connection) + timedelta(seconds=10)


async def test_a_lapsed_lease_is_taken_back_once_and_a_live_one_is_not(
    store: WorkerStore, other: WorkerStore, connection: Connection
) -> None:
    lapsed = await add_job(connection)
    live = await add_job(connection)
    await claim(store)
    await connection.execute("update jobs set lease_until = now() - interval '1 ms' where id = %s", (lapsed,))
    now = await database_now(connection)

    reaped = await asyncio.gather(
        store.reap_leases(UNBOUNDED, expected_now=now), other.reap_leases(UNBOUNDED, expected_now=now)
    )

    assert [lease.job_id for leases in reaped for lease in leases] == [lapsed]
    row = await row_of(connection, lapsed)
    assert (row["state"], row["lost"], row["attempt"]) == ("due", 1, 1)
    assert (await row_of(connection, live))["state"] == "claimed"


async def test_nothing_is_reaped_while_the_databases_clock_is_not_what_was_expected(
    store: WorkerStore, connection: Connection
) -> None:
    job = await add_job(connection)
    await claim(store)
    await connection.execute("update jobs set lease_until = now() - interval '1 s' where id = %s", (job,))
    now = await database_now(connection)

    assert await store.reap_leases(UNBOUNDED, expected_now=now - timedelta(seconds=30)) == []
    assert await store.reap_leases(UNBOUNDED, expected_now=now + timedelta(seconds=30)) == []
    assert len(await store.reap_leases(UNBOUNDED, expected_now=await database_now(connection))) == 1


async def test_nothing_is_reaped_over_another_backend_than_the_one_that_was_watched(
    store: WorkerStore, connection: Connection
) -> None:
    job = await add_job(connection)
    await claim(store)
    await connection.execute("update jobs set lease_until = now() - interval '1 s' where id = %s", (job,))
    watched, now = store.main.generation, await database_now(connection)
    await connection.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )

    assert await store.reap_leases(UNBOUNDED, expected_now=now, backend=watched) == []
    assert store.main.generation != watched
    assert len(await store.reap_leases(UNBOUNDED, expected_now=now, backend=store.main.generation)) == 1


async def test_a_job_that_kills_its_worker_three_times_is_dead_and_its_batch_mates_are_not(
    store: WorkerStore, connection: Connection
) -> None:
    killer = await add_job(connection, due_in=-60)
    mates = [await add_job(connection) for _ in range(3)]

    async def lose(*, solo: bool) -> None:
        await claim(store, solo=solo, **({"batch": 1} if solo else {}))
        await connection.execute("update jobs set lease_until = now() - interval '1 s' where state = 'claimed'")
        await store.reap_leases(UNBOUNDED, expected_now=await database_now(connection))

    await lose(solo=False)
    await lose(solo=False)  # the mates with it, once more: it may have been the machine
    await connection.execute("update jobs set next_run_at = next_run_at - interval '1 hour' where id = %s", (killer,))
    await lose(solo=True)

    row = await row_of(connection, killer)
    assert (row["state"], row["lost"]) == ("dead", 3)
    assert "3 times in a row" in row["dead_reason"]
    assert [run["outcome"] for run in await runs_of(connection, killer)] == ["lost"] * 3
    for mate in mates:
        assert (await row_of(connection, mate))["state"] == "due"


async def test_a_hand_back_that_comes_late_leaves_later_claims_alone(
    store: WorkerStore, connection: Connection
) -> None:
    """A frozen server carries it out when its client has long asked again, and claimed."""
    await add_job(connection, due_in=-1)
    (claimed,) = await claim(store)
    row = await row_of(connection, claimed.id)
    parameters = {
        "ids": [],
        "generations": [],
        "owner": row["lease_owner"],
        "from_at": UNBOUNDED.from_at,
        "until_at": UNBOUNDED.until_at,
    }
    for claimed_by, state in ((row["claimed_at"] - timedelta(milliseconds=1), "claimed"), (row["claimed_at"], "due")):
        await connection.execute(query("release_unknown_claims"), {**parameters, "claimed_by": claimed_by})
        assert (await row_of(connection, claimed.id))["state"] == state


async def test_claims_whose_answer_never_came_are_handed_back(store: WorkerStore, connection: Connection) -> None:
    known = await add_job(connection, due_in=-9)
    unknown = await add_job(connection, due_in=-1)
    claims = await claim(store)

    released = await store.release_unknown_claims([c for c in claims if c.id == known])

    assert released == [unknown]
    row = await row_of(connection, unknown)
    assert (row["state"], row["attempt"], row["lease_owner"]) == ("due", 0, None)
    assert (await row_of(connection, known))["state"] == "claimed"
    assert await runs_of(connection, unknown) == []


async def test_missed_ticks_are_settled_before_the_run_starts(store: WorkerStore, connection: Connection) -> None:
    now = await database_now(connection)
    anchor = now.replace(microsecond=0) - timedelta(seconds=95)
    job = await add_job(
        connection,
        due_in=-95,
        scheduled_for=anchor,
        schedule={"every": "PT10S", "anchor": anchor.isoformat().replace("+00:00", "Z")},
    )
    (row,) = await decoded(store, await claim(store))
    settlement = settle(row.going)
    assert settlement is not None

    passed = await store.settle_claims([(row.claim, settlement)])

    assert passed == {job}
    (skip,) = await skips_of(connection, job)
    assert (skip["first"], skip["count"], skip["reason"]) == (anchor, 9, "missed")
    stored = await row_of(connection, job)
    assert (stored["scheduled_for"], stored["cause"]) == (anchor + timedelta(seconds=90), "catchup")
    assert stored["state"] == "claimed"


async def test_a_settlement_sent_twice_skips_once(store: WorkerStore, connection: Connection) -> None:
    anchor = (await database_now(connection)).replace(microsecond=0) - timedelta(seconds=95)
    job = await add_job(
        connection, due_in=-95, scheduled_for=anchor, schedule={"every": "PT10S", "anchor": anchor.isoformat()}
    )
    (row,) = await decoded(store, await claim(store))
    settlement = settle(row.going)
    assert settlement is not None

    first = await store.settle_claims([(row.claim, settlement)])
    again = await store.settle_claims([(row.claim, settlement)])  # as after a commit whose answer was lost

    assert first == again == {job}
    assert len(await skips_of(connection, job)) == 1


async def test_a_stale_settlement_writes_no_skip(store: WorkerStore, connection: Connection) -> None:
    anchor = (await database_now(connection)).replace(microsecond=0) - timedelta(seconds=95)
    job = await add_job(
        connection, due_in=-95, scheduled_for=anchor, schedule={"every": "PT10S", "anchor": anchor.isoformat()}
    )
    (row,) = await decoded(store, await claim(store))
    settlement = settle(row.going)
    assert settlement is not None
    await connection.execute("update jobs set lease_generation = lease_generation + 1 where id = %s", (job,))

    assert await store.settle_claims([(row.claim, settlement)]) == set()
    assert await skips_of(connection, job) == []


async def test_a_row_that_cannot_be_decoded_spoils_no_other(store: WorkerStore, connection: Connection) -> None:
    sound = await add_job(connection)
    bad = await add_job(connection, schedule={"cron": "not a cron at all", "timezone": "UTC"})

    rows = await store.read_claimed(await claim(store))

    by_id = {row.claim.id: row for row in rows}
    assert isinstance(by_id[sound], Claimed)
    assert isinstance(by_id[bad], Undecodable)
    assert "cannot be decoded" in by_id[bad].reason


async def test_a_hostile_instant_spoils_no_other_row(store: WorkerStore, connection: Connection) -> None:
    sound = await add_job(connection)
    bad = await add_job(connection)
    for constraint in ("readable_instants",):
        await connection.execute(f"alter table jobs drop constraint {constraint}")
    await connection.execute("update jobs set scheduled_for = 'infinity' where id = %s", (bad,))

    claims = await claim(store)

    assert {c.id for c in claims} == {sound, bad}


async def test_a_value_that_postgresql_cannot_hold_is_told_apart(store: WorkerStore, connection: Connection) -> None:
    await add_job(connection)
    run = await ended(store, await claim(store), result=b'{"a":"\\u0000"}')

    with pytest.raises(StatementRefused):
        await store.complete_runs(run)


async def test_peek_tells_what_is_due_when_and_where(store: WorkerStore, connection: Connection) -> None:
    await add_job(connection, due_in=-2, slot=5)
    await add_job(connection, due_in=20, slot=3000)
    await add_job(connection, due_in=-9, slot=7, handler="unknown")
    await add_job(connection, due_in=-3, lost=2)
    bounds = near(await database_now(connection))
    own_arc = [("noop", Arc(lo=2000, hi=4095))]

    peek = await store.peek(own_arc, ["noop"], ["noop"], bounds, arcs=bounds, horizon_seconds=30.0)

    (own,) = peek.heads
    (ring,) = peek.ring
    assert not peek.beyond
    assert 15 < own.wait_seconds < 20.1
    assert -4 < ring.wait_seconds < -1.9
    assert peek.solo_wait_seconds is not None
    assert peek.solo_wait_seconds < -2.9
    assert peek.lapse_seconds is None
    assert (await store.peek(own_arc, [], ["noop"], bounds, arcs=bounds, horizon_seconds=1.0)).heads == ()
    await claim(store)
    peek = await store.peek([], ["noop"], ["noop"], bounds, arcs=bounds, horizon_seconds=30.0)
    assert peek.lapse_seconds is not None
    assert 10 < peek.lapse_seconds < 15.1


async def test_peek_tells_of_what_is_due_beyond_the_bounds_of_arcs(store: WorkerStore, connection: Connection) -> None:
    await add_job(connection, due_in=20 * 86_400)
    arcs = near(await database_now(connection))

    async def beyond(peeked: Bounds) -> bool:
        return (await store.peek([], ["noop"], ["noop"], peeked, arcs=arcs, horizon_seconds=1.0)).beyond

    assert not await beyond(UNBOUNDED), "it is not due"
    await add_job(connection, due_in=-20 * 86_400, lost=2)
    assert not await beyond(arcs)
    assert await beyond(UNBOUNDED)


async def test_renew_and_complete_of_the_same_rows_do_not_deadlock(store: WorkerStore, connection: Connection) -> None:
    await add_many(connection, 200)
    claims = await claim(store, batch=200)
    runs = await ended(store, claims)

    async def renew() -> None:
        for _ in range(10):
            await store.renew_leases(claims)

    async def complete() -> int:
        written = 0
        for start in range(0, 200, 20):
            written += len((await store.complete_runs(runs[start : start + 20])).written)
        return written

    _, written = await asyncio.gather(renew(), complete())
    assert written == 200
