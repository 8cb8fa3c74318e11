"""A worker that is gone between any two of its statements: nothing is kept in its memory that the next one needs.

Each statement is a transaction of its own, so "killed between two statements" is "never sends the next one".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.lifecycle import after_run
from ringcron.models import Arc, RunOutcome
from ringcron.policies import settle
from ringcron.store.answers import EndedRun
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.claimed import Claimed
from ringcron.store.worker import WorkerStore
from tests.support.jobs import add_job, database_now, row_of, runs_of, skips_of

pytestmark = pytest.mark.store

RING = Arc(lo=0, hi=4095)
PERIOD = timedelta(hours=1)
STEPS = ("claim", "settle", "renew", "complete")
"""What a worker sends for one run, in order."""
Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


def store_of(url: str, worker_id: str) -> WorkerStore:
    clock = SystemClock()
    return WorkerStore(
        url,
        worker_id=worker_id,
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=15.0,
        statement_seconds=10.0,
    )


async def run_once(url: str, worker_id: str, *, last: str = "complete") -> list[UUID]:
    """A worker that claims what is due and is gone after the step `last`. The ids that it claimed."""
    store = store_of(url, worker_id)
    try:
        claims = await store.claim(RING, ["noop"], batch=10, bounds=UNBOUNDED)
        if last == "claim" or not claims:
            return [claim.id for claim in claims]
        for row in await store.definitions(claims):
            assert isinstance(row, Claimed)
            if (settlement := settle(row.going)) is not None:
                await store.settle_claims([(row.claim, settlement)])
        if last == "settle":
            return [claim.id for claim in claims]
        await store.renew_leases(claims)
        if last == "renew":
            return [claim.id for claim in claims]
        now = SystemClock().elapsed()
        for row in await store.read_claimed(claims):
            assert isinstance(row, Claimed)
            completion = after_run(row.going, RunOutcome.SUCCEEDED, now=row.claim.decided_until, random=0.5)
            ended = EndedRun(
                claim=row.claim,
                revision=row.revision,
                outcome=RunOutcome.SUCCEEDED,
                error=None,
                result=None,
                started_at=now,
                finished_at=now,
                completion=completion,
            )
            await store.complete_runs([ended])
        return [claim.id for claim in claims]
    finally:
        await store.close()


async def lapse_and_reap(url: str, connection: Connection, worker_id: str) -> None:
    """The leases of the worker that is gone lapse, and another one takes them back."""
    await connection.execute("update jobs set lease_until = now() - interval '1 ms' where state = 'claimed'")
    store = store_of(url, worker_id)
    try:
        await store.reap_leases(UNBOUNDED, expected_now=await database_now(connection))
    finally:
        await store.close()


@pytest.mark.parametrize("last", STEPS)
async def test_wherever_its_worker_vanishes_an_occurrence_runs_and_the_chain_goes_on(
    database_url: str, connection: Connection, last: str
) -> None:
    """A39, A40, L7, L8, L9: gone after any statement of a run: the same tick runs, and the next one is planned."""
    anchor = (await database_now(connection)).replace(microsecond=0) - 3 * PERIOD - PERIOD / 2
    every = {"every": "PT1H", "anchor": anchor.isoformat().replace("+00:00", "Z")}
    job = await add_job(connection, due_in=-3.5 * PERIOD.total_seconds(), scheduled_for=anchor, schedule=every)

    assert await run_once(database_url, "gone.1", last=last) == [job]
    if last != "complete":
        await lapse_and_reap(database_url, connection, "next.2")
        assert await run_once(database_url, "next.2") == [job]

    ran = [(run["scheduled_for"], run["outcome"], run["attempt"]) for run in await runs_of(connection, job)]
    newest = anchor + 3 * PERIOD
    lost = [] if last == "complete" else [(anchor if last == "claim" else newest, "lost", 1)]
    assert ran == [*lost, (newest, "succeeded", len(lost) + 1)]
    # The tick of an attempt that was lost unsettled stands among the runs, and so in no skip.
    skipped = (anchor + PERIOD, 2) if last == "claim" else (anchor, 3)
    assert [(skip["first"], skip["count"]) for skip in await skips_of(connection, job)] == [skipped]
    row = await row_of(connection, job)
    assert row["state"] == "due"
    assert row["scheduled_for"] == newest + PERIOD
    assert row["next_run_at"] <= await database_now(connection) + PERIOD


async def test_who_has_not_the_handler_takes_its_lease_back_and_leaves_the_job_as_it_is(
    database_url: str, connection: Connection
) -> None:
    """A47, R14: whoever reaps needs no handler, and decides nothing that would need one: the job waits for those that
    have it. The loss counts as a loss and as an attempt, and by itself ends no job."""
    job = await add_job(connection, handler="rare", max_attempts=1)
    owner = store_of(database_url, "owner.1")
    claimed = await owner.claim(RING, ["rare"], batch=1, bounds=UNBOUNDED)
    await owner.close()
    assert len(claimed) == 1

    await lapse_and_reap(database_url, connection, "without.2")

    assert await run_once(database_url, "without.2") == []  # it asks for the handler "noop"
    row = await row_of(connection, job)
    assert (row["state"], row["lost"], row["dead_reason"], row["payload"]) == ("due", 1, None, None)
    again = store_of(database_url, "capable.3")
    assert [claim.id for claim in await again.claim(RING, ["rare"], batch=1, bounds=UNBOUNDED)] == [job]
    await again.close()
