"""What a person does to a job while a worker claims it, ends its run, or takes its lapsed lease back.

Each pair is made to meet, never left to luck: one side holds the row's lock with its write not yet committed while the
other one starts. What comes out must be, to the last column, what one after the other gives: whoever held the lock came
first; only one who did not wait for it may have come before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest

from ringcron import changes
from ringcron.changes import Change
from ringcron.clock import DatabaseClock, SystemClock
from ringcron.errors import RingcronError
from ringcron.lifecycle import after_run
from ringcron.models import PARKED, Arc, Claim, Definition, Job, RunOutcome
from ringcron.slots import new_job_id
from ringcron.store.answers import EndedRun
from ringcron.store.api import ApiStore
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.claimed import Claimed
from ringcron.store.connection import Connections
from ringcron.store.creating import NewJob, OnConflict
from ringcron.store.pool import Pool
from ringcron.store.within import OneTransaction
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.endings import decisive
from tests.support.days import carve_days
from tests.support.jobs import add_job, database_now, row_of, runs_of, skips_of
from tests.support.waiting import until

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]
Answer = str
Row = dict[str, Any]
HOUR = timedelta(hours=1)
OF_THE_TWIN = frozenset({"id", "slot", "key", "created_at"})


class Instants(NamedTuple):
    """The instants of one test, by which outcomes are told apart. All others lie in the test's own time: "now"."""

    passed: datetime  # a tick that has come, or a one-off's instant
    following: datetime  # the tick after it
    new: datetime  # what a patch or a replacement moves the job to


@dataclass
class Scene:
    """One job, and whoever acts on it."""

    connection: Connection
    pool: Pool
    workers: dict[str, WorkerStore]
    at: Instants
    job_id: UUID
    claim: Claim | None = None

    def store(self, within: Connections | None) -> ApiStore:
        return ApiStore(self.pool if within is None else within, clock=SystemClock())

    @contextmanager
    def worker(self, within: Connections | None, name: str = "w.1") -> Iterator[WorkerStore]:
        worker = self.workers[name]
        own = worker.main
        if within is not None:
            worker.main = within
        yield worker
        worker.main = own


Act = Callable[[Scene, Connections | None], Awaitable[Answer]]
"""Something done to the scene's job, over its own connections or within the transaction that is given."""


# What people do.


def changing(decide: Callable[[Scene, Job, datetime], Change]) -> Act:
    async def act(scene: Scene, within: Connections | None) -> Answer:
        job, change = await scene.store(within).change_job(scene.job_id, lambda job, now: decide(scene, job, now))
        return f"{job.state}, waits" if change.waits else job.state

    return act


def patched(scene: Scene, job: Job, now: datetime, *, after_current: bool) -> Change:
    one_off = job.definition.schedule is None
    moved = {"run_at": scene.at.new} if one_off else {"schedule": _schedule(scene.at.new, "P1D")}
    return changes.patch(job, replace(job.definition, **moved), now, after_current=after_current)  # type: ignore[arg-type]


async def delete(scene: Scene, within: Connections | None) -> Answer:
    return await scene.store(within).cancel_job(scene.job_id)


async def replace_by_key(scene: Scene, within: Connections | None) -> Answer:
    store = scene.store(within)
    now = await store.now()
    definition = Definition(handler="noop", payload=2, run_at=scene.at.new, key=str(scene.job_id))
    new = NewJob(id=new_job_id(now), definition=definition, created_at=now, scheduled_for=scene.at.new)
    created, job = await store.insert_job(new, OnConflict.REPLACE)
    return f"{created}, {'same' if job.id == scene.job_id else 'other'} job"


async def cancel_run(scene: Scene, within: Connections | None) -> Answer:
    generation = 1 if scene.claim is None else scene.claim.lease_generation
    return await scene.store(within).request_cancel(scene.job_id, generation)


PEOPLE: dict[str, Act] = {
    "pause": changing(lambda _, job, now: changes.pause(job, now, reason="maintenance", by="me")),
    "resume": changing(lambda _, job, now: changes.resume(job, now)),
    "trigger": changing(lambda _, job, now: changes.trigger(job, now)),
    "redrive": changing(lambda _, job, now: changes.redrive(job, now)),
    "PATCH name": changing(
        lambda _, job, now: changes.patch(job, replace(job.definition, name="new"), now, after_current=False)
    ),
    "PATCH schedule": changing(lambda scene, job, now: patched(scene, job, now, after_current=False)),
    "PATCH schedule?afterCurrent": changing(lambda scene, job, now: patched(scene, job, now, after_current=True)),
    "DELETE": delete,
    "DELETE?afterCurrent": changing(lambda _, job, now: changes.cancel_after_current(job, now)),
    "replace": replace_by_key,
    "cancel run": cancel_run,
}


# What workers do.


async def claims_of(worker: WorkerStore) -> list[Claim]:
    """A normal claim, or one of a quarantined job."""
    ring = Arc(lo=0, hi=4095)
    claims = await worker.claim(ring, ["noop"], batch=10, bounds=UNBOUNDED)
    return claims or await worker.claim(ring, ["noop"], batch=1, bounds=UNBOUNDED, solo=True)


async def claim(scene: Scene, within: Connections | None) -> Answer:
    with scene.worker(within) as worker:
        claims = await claims_of(worker)
        return f"claimed attempt {claims[0].attempt}, {claims[0].cause}" if claims else "nothing to claim"


def completing(outcome: RunOutcome) -> Act:
    async def complete(scene: Scene, within: Connections | None) -> Answer:
        assert scene.claim is not None
        with scene.worker(within) as worker:
            while True:
                rows = await worker.read_claimed([scene.claim])
                if not rows:
                    return "refused"
                assert isinstance(rows[0], Claimed)
                decides, now = decisive(rows[0], outcome), await database_now(scene.connection)
                completion = after_run(rows[0].going, decides, now=now, random=1.0, error="boom")
                ended = EndedRun(
                    claim=scene.claim,
                    revision=rows[0].revision,
                    outcome=outcome,
                    error=None,
                    result=None,
                    started_at=0,
                    finished_at=0,
                    completion=completion,
                )
                done = await worker.complete_runs([ended])
                if done.moved:
                    continue  # the job changed meanwhile: decided again
                return f"completed: {completion.state}" if done.written else "refused"

    return complete


async def reap(scene: Scene, within: Connections | None) -> Answer:
    with scene.worker(within, "w.2") as worker:
        reaped = await worker.reap_leases(UNBOUNDED, expected_now=await database_now(scene.connection))
        return f"reaped {len(reaped)}"


# Where it begins.


def _schedule(anchor: datetime, every: str = "PT1H") -> dict[str, Any]:
    return {"every": every, "anchor": anchor.isoformat().replace("+00:00", "Z")}


@dataclass(frozen=True)
class Start:
    """A job as it stands before both: its columns by the test's instants, and what has been done to it."""

    recurring: bool
    set: str = ""
    claimed: bool = False
    lapsed: bool = False


TRIGGERED = "cause = 'manual', next_run_at = now(), scheduled_for = now(), decided_until = %(passed)s"
TO_BE_PAUSED = """after_current = '{"pause": {"reason": "r", "by": "b"}}'"""
LATER = "next_run_at = %(following)s, scheduled_for = %(following)s, decided_until = %(passed)s"
WAITING = {
    "one-off": Start(False),
    "one-off in back-off": Start(False, "attempt = 2"),
    "one-off ahead": Start(False, "run_at = %(following)s, next_run_at = %(following)s, scheduled_for = %(following)s"),
    "recurring": Start(True),
    "triggered while paused": Start(True, f"{TRIGGERED}, {TO_BE_PAUSED}"),
    "paused recurring": Start(True, "state = 'paused', next_run_at = '9500-01-01Z', pause_reason = 'r'"),
    "dead": Start(True, "state = 'dead', next_run_at = '9500-01-01Z', dead_reason = 'boom', attempt = 5"),
}
SUCCEEDS = {
    "claimed one-off": Start(False, claimed=True),
    "claimed, to be paused": Start(True, TO_BE_PAUSED, claimed=True),
    "claimed, triggered": Start(True, """after_current = '{"trigger": true}'""", claimed=True),
}
FAILS = {
    "claimed one-off": Start(False, claimed=True),
    "claimed recurring": Start(True, claimed=True),
    "claimed at its last attempt": Start(False, "attempt = 4", claimed=True),
}
LAPSED = {
    "lapsed one-off": Start(False, claimed=True, lapsed=True),
    "lapsed recurring": Start(True, claimed=True, lapsed=True),
    "lapsed, to be paused": Start(True, TO_BE_PAUSED, claimed=True, lapsed=True),
    "lapsed, to be cancelled": Start(True, """after_current = '{"cancel": true}'""", claimed=True, lapsed=True),
    "lapsed, its run to be cancelled": Start(False, "cancel_requested = true", claimed=True, lapsed=True),
    "lapsed too often": Start(False, "lost = 2", claimed=True, lapsed=True),
}


class Races:
    """Makes scenes and compares how they end."""

    def __init__(self, connection: Connection, holder: Connection, pool: Pool, workers: dict[str, WorkerStore]) -> None:
        self.connection = connection
        self._holder = holder
        self._pool = pool
        self._workers = workers

    async def instants(self) -> Instants:
        passed = (await database_now(self.connection)).replace(microsecond=0) - HOUR / 2
        return Instants(passed=passed, following=passed + HOUR, new=passed + 5 * HOUR)

    async def scene(self, start: Start, at: Instants) -> Scene:
        connection = self.connection
        await connection.execute("update jobs set handler = 'earlier'")  # only the scene's own job is claimed
        schedule = _schedule(at.passed) if start.recurring else None
        job_id = await add_job(connection, schedule=schedule)
        await connection.execute(
            "update jobs set key = id::text, next_run_at = %(passed)s, scheduled_for = %(passed)s, "
            "decided_until = %(passed)s - interval '1 s', run_at = case when schedule is null then %(passed)s end "
            "where id = %(id)s",
            {"passed": at.passed, "id": job_id},
        )
        await connection.execute("insert into job_keys (key, job_id) values (%s, %s)", (str(job_id), job_id))
        if start.set:
            values = {"passed": at.passed, "following": at.following, "id": job_id}
            await connection.execute(f"update jobs set {start.set} where id = %(id)s", values)
        scene = Scene(connection, self._pool, self._workers, at, job_id)
        if start.claimed:
            with scene.worker(None) as worker:
                (scene.claim,) = await claims_of(worker)
        if start.lapsed:
            await connection.execute("update jobs set lease_until = now() - interval '1 s' where id = %s", (job_id,))
        return scene

    async def apart(self, start: Start, at: Instants, first: Act, second: Act) -> list[Any]:
        """What comes of one after the other."""
        scene = await self.scene(start, at)
        answers = [await answer(first, scene, None), await answer(second, scene, None)]
        return [*answers, *await self.left(scene)]

    async def meeting(self, start: Start, at: Instants, first: Act, second: Act) -> tuple[bool, list[Any]]:
        """Whether `second`, which begins while `first` is done but not committed, waited for it; and what came of both.

        Claims and reaps do not wait: they pass over the locked row, and come again."""
        scene = await self.scene(start, at)
        async with self._holder.transaction():
            first_answer = await answer(first, scene, OneTransaction(self._holder))
            locked = await self._is_locked(scene)
            task = asyncio.create_task(answer(second, scene, None))
            await until(lambda: _done_or(task, self._somebody_waits), what="the second one waits or is done")
            waited = not task.done()
        second_answer = await task
        if locked and not waited and second in (claim, reap):
            assert second_answer in ("nothing to claim", "reaped 0"), "a locked row is passed over"
            waited, second_answer = True, await answer(second, scene, None)
        return waited, [first_answer, second_answer, *await self.left(scene)]

    async def _is_locked(self, scene: Scene) -> bool:
        query = "select id from jobs where id = %s for update skip locked"
        cursor = await self.connection.execute(query, (scene.job_id,))
        return await cursor.fetchone() is None

    async def _somebody_waits(self) -> bool:
        cursor = await self.connection.execute("select count(*) from pg_locks where not granted")
        row = await cursor.fetchone()
        assert row is not None
        return bool(row[0])

    async def left(self, scene: Scene) -> list[Any]:
        """The job's row, its runs, its skips and whether it has its key still, in terms that twins share."""
        row = await row_of(scene.connection, scene.job_id)
        runs = await runs_of(scene.connection, scene.job_id)
        skips = await skips_of(scene.connection, scene.job_id)
        held = await (
            await scene.connection.execute("select job_id from job_keys where key = %s", (str(scene.job_id),))
        ).fetchone()
        holder = "free" if held is None else "its own" if held[0] == scene.job_id else "another's"
        return [self._named(row, scene.at), *(self._named(each, scene.at) for each in (*runs, *skips)), holder]

    def _named(self, row: Row, at: Instants) -> Row:
        return {name: _named(value, at) for name, value in row.items() if name not in OF_THE_TWIN | {"job_id"}}


async def _done_or(task: asyncio.Task[Answer], condition: Callable[[], Awaitable[bool]]) -> bool:
    return task.done() or await condition()


def _named(value: Any, at: Instants) -> Any:
    if not isinstance(value, datetime):
        return value
    if value == PARKED:
        return "parked"
    if value in at:
        return at._fields[at.index(value)]
    ahead = (value - at.passed - HOUR / 2).total_seconds()
    # A test lasts less than a minute; leases and back-offs end soon after it.
    return "about now" if -1 <= ahead < 60 else value - at.passed


async def answer(act: Act, scene: Scene, within: Connections | None) -> Answer:
    try:
        return await act(scene, within)
    except RingcronError as refused:
        return type(refused).__name__


@pytest.fixture
async def races(database_url: str) -> AsyncIterator[Races]:
    clock = SystemClock()
    pool = Pool(database_url, application_name="test", max_size=4, seconds=30)
    workers = {
        name: WorkerStore(
            database_url,
            worker_id=name,
            clock=clock,
            database_clock=DatabaseClock(clock),
            lease_seconds=15,
            statement_seconds=10,
        )
        for name in ("w.1", "w.2")
    }
    connect = psycopg.AsyncConnection.connect
    async with (
        await connect(database_url, autocommit=True) as connection,
        await connect(database_url, autocommit=True) as holder,
    ):
        # Days of their own, so that what is parked or ends moves between partitions under the other one's eyes.
        await carve_days(connection, "jobs", await database_now(connection), before=1, after=1)
        yield Races(connection, holder, pool, workers)
    for worker in workers.values():
        await worker.close()
    await pool.close()


async def compared(races: Races, starts: dict[str, Start], person: Act, worker: Act) -> None:
    at = await races.instants()
    for name, start in starts.items():
        persons = await races.apart(start, at, person, worker)
        workers = await races.apart(start, at, worker, person)
        for first, second, order, other in (
            (person, worker, persons, workers),
            (worker, person, workers, persons),
        ):
            waited, met = await races.meeting(start, at, first, second)
            there, here, *left = other
            # Who did not wait was over before the other one was: as if it had come first.
            orders = [order] if waited else [order, [here, there, *left]]
            assert met in orders, f"{name}, {'the person' if first is person else 'the worker'} first: {order}"


@pytest.mark.parametrize("act", PEOPLE)
async def test_of_a_claim_and_what_a_person_does_each_sees_the_other(races: Races, act: str) -> None:
    await compared(races, WAITING, PEOPLE[act], claim)


@pytest.mark.parametrize("act", PEOPLE)
async def test_of_the_end_of_a_run_or_a_reap_and_what_a_person_does_each_sees_the_other(races: Races, act: str) -> None:
    await compared(races, SUCCEEDS, PEOPLE[act], completing(RunOutcome.SUCCEEDED))
    await compared(races, FAILS, PEOPLE[act], completing(RunOutcome.FAILED))
    await compared(races, LAPSED, PEOPLE[act], reap)


@pytest.mark.parametrize("act", ["pause", "trigger", "PATCH name", "PATCH schedule", "DELETE?afterCurrent"])
async def test_a_lapsed_lease_is_reaped_first_by_whoever_comes_first(races: Races, act: str) -> None:
    """What a person does to a job whose lease has lapsed comes to what it would after the reaper: no wish is lost."""
    at = await races.instants()
    for name, start in LAPSED.items():
        said, _, *left, _ = await races.apart(start, at, PEOPLE[act], reap)
        _, said_afterwards, *left_afterwards, _ = await races.apart(start, at, reap, PEOPLE[act])
        assert (said, left) == (said_afterwards, left_afterwards), name
