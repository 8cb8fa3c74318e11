"""Upkeep beside traffic: days are carved and dropped, no statement fails, no row is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.lifecycle import after_run
from ringcron.models import Arc, RunOutcome
from ringcron.slots import SLOT_COUNT
from ringcron.store.answers import EndedRun
from ringcron.store.bounds import UNBOUNDED, near
from ringcron.store.claimed import Claimed
from ringcron.store.connection import Connection, transact
from ringcron.store.layout import DAY
from ringcron.store.link import Link
from ringcron.store.pool import Pool
from ringcron.store.repartition import JOBS, RUNS, SKIPS
from ringcron.store.worker import WorkerStore
from tests.support.jobs import add_job, add_many, database_now
from tests.support.layouts import keep_up_for, layout, make_upkeep, names
from tests.support.waiting import until

pytestmark = pytest.mark.store

MONTHS = JOBS.months_ahead + 1
RING = Arc(lo=0, hi=SLOT_COUNT - 1)
SECONDS_BETWEEN = 0.02
"""Each of four clients begins a statement so often: about 200 statements a second in all."""


class Traffic:
    """Clients that create, claim, complete and reschedule jobs, and remember what they did.

    An error that the retry wrapper does not take care of ends the client; `stop` raises it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._clock = SystemClock()
        self._link = Link(url, application_name="creator")
        self._store = WorkerStore(
            url,
            worker_id="w1.00000001",
            clock=self._clock,
            database_clock=DatabaseClock(self._clock),
            lease_seconds=60.0,
            statement_seconds=30.0,
        )
        self._others = [Link(url, application_name=f"rescheduler {n}") for n in range(2)]
        self._tasks: list[asyncio.Task[None]] = []
        self._going = True
        self.created: set[UUID] = set()
        self.completed: set[tuple[UUID, int]] = set()
        self.statements = 0

    def start(self) -> None:
        turns = [self._create, self._run_due, *(lambda link=link: self._reschedule(link) for link in self._others)]
        self._tasks = [asyncio.create_task(self._repeat(turn)) for turn in turns]

    async def stop(self) -> None:
        self._going = False  # nothing is cut short, so that what was done is known
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in (self._link, *self._others):
            await link.close()
        await self._store.close()
        for result in ended:
            if isinstance(result, BaseException):
                raise result

    async def _repeat(self, turn: Callable[[], Awaitable[None]]) -> None:
        while self._going:
            began = self._clock.elapsed()
            await turn()
            await asyncio.sleep(max(0.0, began + SECONDS_BETWEEN - self._clock.elapsed()))

    async def _create(self) -> None:
        async def work(connection: Connection) -> UUID:
            return await add_job(connection, due_in=random.choice((-1, 0, 1, 30, 86400 * random.uniform(0, 20))))

        self.created.add(await self._transact(self._link, work))

    async def _run_due(self) -> None:
        bounds = random.choice((UNBOUNDED, near(self._clock.wall())))
        claims = await self._store.claim(RING, ["noop"], batch=5, bounds=bounds)
        rows = [row for row in await self._store.read_claimed(claims) if isinstance(row, Claimed)]
        assert len(rows) == len(claims)
        now = self._clock.elapsed()
        ended = [
            EndedRun(
                claim=row.claim,
                revision=row.revision,
                outcome=RunOutcome.SUCCEEDED,
                error=None,
                result=None,
                started_at=now,
                finished_at=now,
                completion=after_run(
                    row.going, RunOutcome.SUCCEEDED, now=row.claim.decided_until, random=0.5, error=None
                ),
            )
            for row in rows
        ]
        if ended:
            done = await self._store.complete_runs(ended)
            assert len(done.written) == len(ended)
            self.completed |= {(run.claim.id, run.claim.lease_generation) for run in done.written}
        self.statements += 3 if ended else 1

    async def _reschedule(self, link: Link) -> None:
        """Send a job to another day by its id alone, as the API does; the tuple may be moved under it at any time."""
        if not self.created:
            return
        job_id = random.choice(tuple(self.created))

        async def work(connection: Connection) -> None:
            await connection.execute(
                # not `state = 'due'`: in a partition without statistics that is taken for the way in, by jobs_due
                "update jobs set next_run_at = now() + make_interval(secs => %s) "
                "where id = %s and state is not distinct from 'due'",
                (random.uniform(-1, 86400 * 20), job_id),
            )

        await self._transact(link, work)

    async def _transact(self, link: Link, work: Callable[[Connection], Awaitable[Any]]) -> Any:
        self.statements += 1
        return await transact(link, work, repeatable=False, give_up_after=0.0, clock=self._clock)


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    pool = Pool(database_url, application_name="upkeep", max_size=3, seconds=60)
    yield pool
    await pool.close()


async def test_days_are_carved_and_dropped_beside_200_statements_a_second(
    database_url: str, pool: Pool, connection: psycopg.AsyncConnection[Any]
) -> None:
    today = await keep_up_for(connection, 6, JOBS, RUNS, SKIPS)
    await add_many(connection, 50, due_in=-5 * 86400.0, handler="nobody")  # live in a day that goes
    for _ in range(20):
        await add_job(connection, due_in=-4 * 86400.0, state="done")  # goes with its day
    traffic = Traffic(database_url)
    traffic.start()
    await until(lambda: traffic.completed)
    before = traffic.statements

    upkeeps = [make_upkeep(pool, days_ahead=14, keep_jobs_seconds=2 * 86400, keep_runs_seconds=86400) for _ in range(2)]
    sentences: list[str] = []

    async def kept_up() -> bool:
        for done in await asyncio.gather(*(upkeep.step() for upkeep in upkeeps)):
            sentences.extend(done)
        counts = [len(await layout(pool, table)) for table in (JOBS, RUNS, SKIPS)]
        return counts == [2 + 2 + 15 + MONTHS, 2 + 1 + 15, 2 + 1 + 15]

    await until(kept_up, seconds=60)
    await until(lambda: traffic.statements > before + 300)
    await traffic.stop()

    assert sum("carved" in sentence for sentence in sentences) == 3 * 14 + MONTHS
    assert sum("dropped" in sentence for sentence in sentences) == 4 + 5 + 5
    assert (await names(pool, JOBS))[1] == f"jobs_d{today - 2 * DAY:%Y%m%d}"
    cursor = await connection.execute("select id, handler from jobs")
    rows = await cursor.fetchall()
    assert sum(handler == "nobody" for _, handler in rows) == 50
    assert sorted(job_id for job_id, handler in rows if handler != "nobody") == sorted(traffic.created)
    cursor = await connection.execute("select job_id, lease_generation from runs")
    assert sorted(await cursor.fetchall()) == sorted(traffic.completed)
    assert today + timedelta(days=1) > await database_now(connection)  # else midnight passed and the counts are off
