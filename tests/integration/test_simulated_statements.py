"""The simulation's statements (tests/simulation/database.py) do to a row what PostgreSQL does, and answer the same.

Random histories of claims, settlements, renewals, completions, lapses, reaps and hand-backs, stale ones among them, are
carried out on both, statement by statement, with the same parameters; after each the rows are compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.lifecycle import after_run
from ringcron.models import EARLIEST, Arc, Claim, RunOutcome
from ringcron.policies import settle
from ringcron.store.answers import EndedRun
from ringcron.store.bounds import UNBOUNDED, near
from ringcron.store.claimed import Claimed
from ringcron.store.worker import WorkerStore
from tests.simulation.database import Database, Row
from tests.support.jobs import add_job, database_now

pytestmark = pytest.mark.store

EXACT = (
    "state", "lease_owner", "lease_generation", "attempt", "lost", "occurrences", "cause", "cancel_requested",
    "revision", "scheduled_for",
)  # fmt: skip
INSTANTS = ("next_run_at", "decided_until", "lease_until", "claimed_at")


def _numbers(policies: str) -> list[float | str]:
    """What both mean by a row of policies: PostgreSQL writes 10 where Python writes 10.0."""
    values = policies.strip("()").split(",")
    return [float(value) if value[:1].isdigit() else value for value in values]


ANSWERED: dict[str, Callable[[Any], Any]] = {
    "claim": lambda row: (row[0], row[2], row[3], row[4], row[6], row[9], _numbers(row[13])),
    "peek": lambda row: (row[1] is None, row[2] is None, row[3], row[4]),
    "read_claimed": lambda row: (row[0], row[1], row[6]),
    "renew_leases": lambda row: tuple(row[:3]),
    "read_clock": lambda row: (),
}
POLICIES = [
    {"overlap": overlap, "catchup": catchup}
    for overlap in ("skip", "buffer_one", "buffer_all", "cancel_other")
    for catchup in ("latest", "all", "none")
]


class Both:
    """PostgreSQL and the simulation's table, kept in step."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection
        self.now = EARLIEST
        self.simulated = Database(lambda: self.now, self)

    def changed(self, before: Row | None, after: Row, statement: str, owner: str | None) -> None:
        """Nobody referees here."""

    async def rows(self) -> dict[UUID, dict[str, Any]]:
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute("select * from jobs")
            return {row["id"]: row for row in await cursor.fetchall()}

    async def compare(self, after: str) -> None:
        """Everything that is decided is equal; instants are near, and then made equal."""
        real = await self.rows()
        assert real.keys() == self.simulated.jobs.keys()
        for id, row in self.simulated.jobs.items():
            found = real[id]
            assert {name: getattr(row, name) for name in EXACT} == {name: found[name] for name in EXACT}, after
            assert list(row.kept or ()) == (found["kept"] or []), after
            for name in INSTANTS:
                ours, theirs = getattr(row, name), found[name]
                assert (ours is None) == (theirs is None), (after, name, found)
                assert ours is None or abs(ours - theirs) < timedelta(seconds=5), (after, name, ours, theirs)
                setattr(row, name, theirs)

    async def set(self, id: UUID, **columns: Any) -> None:
        """What time or a person does to a row, to both."""
        for name, value in columns.items():
            await self.connection.execute(f"update jobs set {name} = %s where id = %s", (value, id))
            setattr(self.simulated.jobs[id], name, value)


class Twin(WorkerStore):
    """A worker's store that carries every statement out twice."""

    both: Both

    async def _execute(
        self, link: Any, name: str, parameters: Any, *, repeatable: bool, backend: int | None = None
    ) -> list[tuple[Any, ...]]:
        self.both.now = await database_now(self.both.connection)
        rows = await super()._execute(link, name, parameters, repeatable=repeatable, backend=backend)
        simulated = getattr(self.both.simulated, name)(parameters)
        answered = ANSWERED.get(name, tuple)
        assert sorted(map(repr, map(answered, rows))) == sorted(map(repr, map(answered, simulated))), name
        await self.both.compare(name)
        return rows


class History:
    """What two workers do, drawn."""

    def __init__(self, both: Both, stores: list[Twin], seed: int) -> None:
        self.both, self.stores = both, stores
        self.random = random.Random(seed)
        self.claims: list[tuple[Twin, Claimed]] = []

    async def add_jobs(self) -> None:
        now = await database_now(self.both.connection)
        for number in range(8):
            policies = self.random.choice(POLICIES) if number % 2 else {}
            schedule = {"every": "PT3S", "anchor": "2026-01-01T00:00:00Z"} if number % 2 else None
            tick = now.replace(microsecond=0) - timedelta(seconds=now.second % 3 + self.random.choice((0, 30)))
            await add_job(
                self.both.connection,
                due_in=-self.random.uniform(1, 9),
                schedule=schedule,
                scheduled_for=tick if schedule else None,
                slot=number * 8,
                payload={"n": number},
                **policies,
            )
        for id, row in (await self.both.rows()).items():
            columns = {name: row[name] for name in (*EXACT, *INSTANTS, "slot", "handler", "run_at", *POLICIES[0])}
            document = '{"every":"PT3S","anchor":"2026-01-01T00:00:00Z"}' if row["schedule"] else None
            self.both.simulated.jobs[id] = Row(
                id=id,
                schedule=document,
                max_attempts=row["max_attempts"],
                min_backoff=row["min_backoff_seconds"],
                max_backoff=row["max_backoff_seconds"],
                **columns,
            )

    async def step(self) -> None:
        store = self.random.choice(self.stores)
        steps = [self.claim, self.claim, self.claim, self.renew, self.complete, self.complete, self.complete]
        await self.random.choice([*steps, self.lapse, self.reap, self.release, self.peek, self.let_time_pass])(store)

    async def claim(self, store: Twin) -> None:
        arc = Arc(lo=0, hi=self.random.choice((20, 4095)))
        batch, solo = self.random.randint(1, 3), self.random.random() < 0.3
        overdue = self.random.choice((0.0, 0.0, 600.0))
        came = await store.claim(arc, ["noop"], batch=batch, bounds=UNBOUNDED, overdue_seconds=overdue, solo=solo)
        for row in await store.read_claimed(came):
            assert isinstance(row, Claimed)
            settlement = settle(row.going)
            if settlement is not None:
                await store.settle_claims([(row.claim, settlement)])
                await store.settle_claims([(row.claim, settlement)])  # sent again: the first answer was lost
            self.claims += [
                (store, again) for again in await store.read_claimed([row.claim]) if isinstance(again, Claimed)
            ]

    async def renew(self, store: Twin) -> None:
        await store.renew_leases(self.some())

    async def complete(self, store: Twin) -> None:
        """Perhaps by the wrong worker, or a second time."""
        if not self.claims:
            return
        owner, row = self.random.choice(self.claims[-6:])
        outcome = self.random.choice([*RunOutcome])
        if outcome is RunOutcome.LOST:
            return
        now = SystemClock().elapsed()
        ended = EndedRun(
            claim=row.claim,
            revision=row.revision,
            outcome=outcome,
            error=None,
            result=None,
            started_at=now,
            finished_at=now,
            completion=after_run(row.going, outcome, now=await database_now(self.both.connection), random=0.5),
        )
        await self.random.choice((owner, owner, store)).complete_runs([ended])

    async def lapse(self, store: Twin) -> None:
        for row in list(self.both.simulated.jobs.values()):
            if row.state == "claimed" and self.random.random() < 0.5:
                at = await database_now(self.both.connection) - timedelta(seconds=1)
                await self.both.set(row.id, lease_until=at)

    async def reap(self, store: Twin) -> None:
        now = await database_now(self.both.connection)
        await self.lapse(store)
        await store.reap_leases(UNBOUNDED, expected_now=now + timedelta(seconds=self.random.choice((0, 0, 0, 9))))

    async def release(self, store: Twin) -> None:
        await store.release_unknown_claims(self.some())

    async def peek(self, store: Twin) -> None:
        own = [("noop", Arc(lo=0, hi=20)), ("noop", Arc(lo=21, hi=40))]
        arcs = near(await database_now(self.both.connection))
        await store.peek(own, ["noop"], ["noop"], UNBOUNDED, arcs=arcs, horizon_seconds=90_000.0)

    async def let_time_pass(self, store: Twin) -> None:
        """What waits for its time is due."""
        for row in list(self.both.simulated.jobs.values()):
            if row.state == "due":
                ago = timedelta(seconds=self.random.uniform(1, 700))
                await self.both.set(row.id, next_run_at=await database_now(self.both.connection) - ago)

    def some(self) -> list[Claim]:
        return [row.claim for _, row in self.claims if self.random.random() < 0.5] or [
            row.claim for _, row in self.claims[-1:]
        ]


@pytest.mark.parametrize("seed", range(2))
async def test_the_simulated_statements_do_as_postgresql_does(database_url: str, seed: int) -> None:
    clock = SystemClock()
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        both = Both(connection)
        stores = []
        for worker_id in ("w1.00000001", "w2.00000002"):
            store = Twin(
                database_url,
                worker_id=worker_id,
                clock=clock,
                database_clock=DatabaseClock(clock),
                lease_seconds=60,
                statement_seconds=30,
            )
            store.both = both
            stores.append(store)
        history = History(both, stores, seed)
        try:
            await history.add_jobs()
            for _ in range(40):
                if history.claims or history.random.random() < 0.5:
                    await history.step()
                else:
                    await history.claim(stores[0])
        finally:
            for store in stores:
                await store.close()
        assert both.simulated.runs
