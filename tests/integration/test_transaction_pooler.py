"""P12, A54: behind PgBouncer in transaction mode, with fewer sessions than there are connections, with the switch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.errors import ConfigError, StatementFailed, StoreUnavailable
from ringcron.lifecycle import after_run
from ringcron.models import Arc, RunOutcome
from ringcron.settings import WorkerSettings
from ringcron.store.answers import EndedRun
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.claimed import Claimed
from ringcron.store.link import Link
from ringcron.store.pool import Pool
from ringcron.store.pooled import WORKER_PLANS, missing_role_settings
from ringcron.store.upkeep import Upkeep
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.__main__ import demand_plans
from ringcron_sql.migrate import migrate
from tests.support.api import running_api
from tests.support.jobs import add_many
from tests.support.pooler import running_pooler
from tests.support.programs import Programs
from tests.support.waiting import until

pytestmark = pytest.mark.store

SESSIONS = 2
JOBS = 4_000
RING = Arc(lo=0, hi=4095)
Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
def pooled_url(tmp_path: Path, database_url: str) -> Iterator[str]:
    with running_pooler(tmp_path, database_url, sessions=SESSIONS) as url:
        yield url


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


def make_store(url: str, number: int, *, behind_pooler: bool) -> WorkerStore:
    clock = SystemClock()
    return WorkerStore(
        url,
        worker_id=f"w{number}.0000000{number}",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=60.0,
        statement_seconds=20.0,
        behind_pooler=behind_pooler,
    )


async def set_plans(connection: Connection) -> None:
    """What a role says in production, said by the database of this test."""
    name = sql.Identifier(connection.info.dbname)
    for setting, value in WORKER_PLANS.items():
        statement = sql.SQL("alter database {} set {} = {}").format(name, sql.Identifier(setting), sql.Literal(value))
        await connection.execute(statement)


async def work_off(store: WorkerStore) -> int:
    """Claim, renew and complete until nothing is due; the number of claims."""
    claimed = 0
    while claims := await store.claim(RING, ["noop"], batch=25, bounds=UNBOUNDED):
        claimed += len(claims)
        rows, renewed = await asyncio.gather(store.definitions(claims), store.renew_leases(claims))
        assert len(renewed.held) == len(claims)
        ended = []
        for row in rows:
            assert isinstance(row, Claimed)
            completion = after_run(
                row.going, RunOutcome.SUCCEEDED, now=row.claim.decided_until, random=0.5, error="none"
            )
            ended.append(
                EndedRun(
                    claim=row.claim,
                    revision=row.revision,
                    outcome=RunOutcome.SUCCEEDED,
                    error=None,
                    result=None,
                    started_at=0,
                    finished_at=0,
                    completion=completion,
                )
            )
        done = await store.complete_runs(ended)
        assert len(done.written) == len(claims)
    await store.close()
    return claimed


async def runs(connection: Connection) -> tuple[int, int]:
    """How many runs there are, and of how many jobs."""
    row = await (await connection.execute("select count(*), count(distinct job_id) from runs")).fetchone()
    assert row is not None
    return row[0], row[1]


async def test_a54_thousands_of_claims_of_two_workers_meet_no_error(pooled_url: str, connection: Connection) -> None:
    await add_many(connection, JOBS)
    stores = [make_store(pooled_url, number, behind_pooler=True) for number in (1, 2)]

    claimed = await asyncio.gather(*map(work_off, stores))

    assert sum(claimed) == JOBS
    assert min(claimed) > 0
    assert await runs(connection) == (JOBS, JOBS)


async def test_without_the_switch_prepared_names_clash(pooled_url: str) -> None:
    stores = [make_store(pooled_url, number, behind_pooler=False) for number in (1, 2)]
    await stores[0].look()
    with pytest.raises(StatementFailed, match="prepared statement"):
        await stores[1].look()
    for store in stores:
        await store.close()


async def test_programs_behind_a_pooler(
    pooled_url: str, database_url: str, connection: Connection, programs: Programs
) -> None:
    """Migrate, upkeep, the API and its bell, and two workers, once their role plans as they need it."""
    told = {"database_pooler": "transaction", "bell": "poll"}
    (said,) = await migrate(pooled_url)
    assert "nothing to do" in said
    settings = WorkerSettings.load({}, database_url=pooled_url, zookeeper="none", **told)
    with pytest.raises(ConfigError, match=r"alter role \w+ set enable_seqscan = off;"):
        await demand_plans(settings, "w-0")

    await set_plans(connection)
    clock = SystemClock()

    async def plans() -> bool:  # the sessions that the pooler has still are as they were
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        with suppress(StoreUnavailable):
            return not await missing_role_settings(pooled_url, WORKER_PLANS, application_name="test", clock=clock)
        return False

    await until(plans, what="the pooler's sessions have the settings")
    pool = Pool(pooled_url, application_name="upkeep", max_size=2, seconds=60, behind_pooler=True)
    upkeep = Upkeep(pool, clock, days_ahead=2, keep_runs_seconds=9e6, keep_jobs_seconds=9e6, keep_runs_bytes=None)
    assert any("carved" in sentence for sentence in await upkeep.step())
    await pool.close()

    heard: list[str] = []
    listener = Link(database_url, application_name="listener", seconds=10, on_bell=heard.append)
    async with listener.connection() as straight:
        await straight.execute("select 1")
    async with running_api(pooled_url, pool_size=6, behind_pooler=True) as api:
        create = {"handler": "log", "runAt": "2100-01-01T00:00:00Z"}
        created = await asyncio.gather(*(api.post("/jobs", create) for _ in range(60)))
        assert {answer.status for answer in created} == {201}
        cancelled = await asyncio.gather(*(api.delete(f"/jobs/{answer['jobId']}") for answer in created))
        assert {answer.status for answer in cancelled} == {204}
        listed = await asyncio.gather(*(api.get("/jobs?state=cancelled&limit=100") for _ in range(20)))
        assert {len(answer.body["items"]) for answer in listed} == {60}
        workers = [programs.worker(pooled_url, name=f"w-{number}", concurrency=20, **told) for number in (1, 2)]
        await api.post("/jobs", create | {"runAt": "2000-01-01T00:00:00Z"})
        await until(lambda: heard, what="the bell")
        await add_many(connection, 500, handler="log")

        async def all_ran() -> bool:
            return await runs(connection) == (501, 501)

        await until(all_ran, seconds=60, what="every job ran once")
    await listener.close()
    for worker in workers:
        worker.terminate()
    for worker in workers:
        assert await asyncio.to_thread(worker.wait) == 0
        assert "prepared statement" not in worker.text()
        assert [event for event in worker.events() if event["level"] in {"error", "critical"}] == []
