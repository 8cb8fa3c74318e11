"""Faults that were reproduced before this was built come back when the guard against each is taken out.

Each test plays one scenario twice: as it is, where nothing may happen, and with one guard less, where the fault must
show. Without the second half nobody knows whether the first could fail. Guards that only a whole fleet would miss are
taken out in `tests/chaos/mutants` and `tests/simulation/mutants.py`; `tests/PROOFS.md` has the list.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from kazoo.client import TransactionRequest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.errors import StatementFailed
from ringcron.membership import Published, Session, Tree
from ringcron.models import Arc
from ringcron.store import pinned as pinned_statements
from ringcron.store import worker as worker_store
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.worker import WorkerStore
from ringcron_sql import query
from tests.support.jobs import add_job, database_now, row_of
from tests.support.marker import Marker
from tests.support.servers import zookeeper_client
from tests.support.waiting import until

RING = Arc(lo=0, hi=4095)
ROOT = Path(__file__).parents[2]
Connection = psycopg.AsyncConnection[Any]
TakeOut = Callable[[str, str], None]


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[WorkerStore]:
    clock = SystemClock()
    store = WorkerStore(
        database_url,
        worker_id="w.1",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=60.0,
        statement_seconds=10.0,
    )
    yield store
    await store.close()


@pytest.fixture
def take_out(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Leaves a condition out of a statement, for the rest of the test."""

    def take(name: str, condition: str) -> None:
        whole = query(name)
        assert condition in whole
        monkeypatch.setattr(
            pinned_statements, "query", lambda asked: whole.replace(condition, "") if asked == name else query(asked)
        )
        pinned_statements._pinned.cache_clear()

    yield take
    pinned_statements._pinned.cache_clear()


async def convicted_mates(store: WorkerStore, connection: Connection, *, quarantine: bool) -> int:
    """A job kills its worker whenever it is claimed, and three others are claimed with it where they may be. How many
    of those are dead once it is."""
    killer = await add_job(connection)
    mates = [await add_job(connection) for _ in range(3)]
    for turn in range(6):
        alone = quarantine and turn >= 2
        claims = await store.claim(RING, ["noop"], batch=1 if alone else 10, bounds=UNBOUNDED, solo=alone)
        if killer in {claim.id for claim in claims}:
            ids = [claim.id for claim in claims]
            await connection.execute("update jobs set lease_until = now() - interval '1 s' where id = any(%s)", (ids,))
            await store.reap_leases(UNBOUNDED, expected_now=await database_now(connection))
    assert (await row_of(connection, killer))["state"] == "dead"
    return [(await row_of(connection, mate))["state"] for mate in mates].count("dead")


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "without"])
async def test_innocent_jobs_are_convicted_without_quarantine(
    store: WorkerStore, connection: Connection, take_out: TakeOut, guarded: bool
) -> None:
    """Who was lost twice is claimed alone, so a loss convicts nobody who only happened to be there."""
    if not guarded:
        take_out("claim", "and (j.lost > 1) = %(solo)s")
    assert await convicted_mates(store, connection, quarantine=guarded) == (0 if guarded else 3)


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "without"])
async def test_a_step_of_the_databases_clock_takes_leases_without_the_reapers_guard(
    store: WorkerStore, connection: Connection, take_out: TakeOut, guarded: bool
) -> None:
    if not guarded:
        guard = next(part for part in query("reap_leases").split("\n      and ") if "expected_now" in part)
        take_out("reap_leases", "\n      and " + guard.split("\n    order by")[0])
    job = await add_job(connection)
    await store.claim(RING, ["noop"], batch=1, bounds=UNBOUNDED)
    before_the_step = await database_now(connection) - timedelta(seconds=90)
    await connection.execute("update jobs set lease_until = now() - interval '30 s' where id = %s", (job,))

    reaped = await store.reap_leases(UNBOUNDED, expected_now=before_the_step)

    assert [lease.job_id for lease in reaped] == ([] if guarded else [job])


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "without"])
async def test_one_infinite_instant_spoils_every_read_without_the_tolerant_reader(
    store: WorkerStore, connection: Connection, monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    async def plain(cursor: psycopg.AsyncCursor[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return await cursor.fetchall()

    jobs = {await add_job(connection), await add_job(connection)}
    await connection.execute("alter table jobs drop constraint readable_instants")
    await connection.execute("update jobs set scheduled_for = 'infinity' where id = %s", (min(jobs),))
    claiming = store.claim(RING, ["noop"], batch=10, bounds=UNBOUNDED)
    if guarded:
        assert {claim.id for claim in await claiming} == jobs
        return
    monkeypatch.setattr(worker_store, "rows_of", plain)
    with pytest.raises(StatementFailed):
        await claiming


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "without"])
async def test_a_deposed_leader_writes_again_without_the_check_of_its_own_node(
    zookeeper_hosts: str, monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    """Plain compare-and-set takes it: in a tree that was made anew the versions begin at 0 again."""
    if not guarded:
        check = TransactionRequest.check
        root = "/" + zookeeper_hosts.partition("/")[2]
        monkeypatch.setattr(TransactionRequest, "check", lambda self, path, version: check(self, root, version))
    session = Session(zookeeper_hosts, session_seconds=10.0, clock=SystemClock(), notify=lambda: None)
    await session.start()
    await until(lambda: session.connected)
    tree = Tree(session, lambda: None)
    with zookeeper_client(zookeeper_hosts) as client:
        client.create("/leader/old-0000000000", makepath=True)
        client.create("/assignment", b"old")
        read = await tree.assignment()
        client.delete("/leader", recursive=True)
        client.delete("/assignment")
        client.create("/leader/new-0000000000", makepath=True)
        client.create("/assignment", b"new")

        published = await tree.publish(b"late", over=read, while_exists=f"{session.root}/leader/old-0000000000")

        assert published is (Published.DEPOSED if guarded else Published.DONE)
        assert client.get("/assignment")[0] == (b"new" if guarded else b"late")
    await session.stop()


@pytest.mark.processes
async def test_a_handler_process_outlives_its_worker_without_the_parent_death_signal(tmp_path: Path) -> None:
    """The guard is stopped, so that nothing else ends it. With the signal:
    `test_nothing_goes_on_when_worker_and_guard_are_killed_but_a_command_that_left_its_group`."""
    marker = Marker(tmp_path / "marker")
    without = "import ringcron_shard_worker.handler_process.prctl as p; p._prctl = lambda option, value: True"
    (tmp_path / "sitecustomize.py").write_text(without)
    wish = {"runs": [{"handler": "hold-gil", "payload": str(tmp_path / "marker")}], "trust": 600}
    said = tmp_path / "said"
    with said.open("wb") as output:
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.execution_program", json.dumps(wish), cwd=ROOT,
            stdout=output, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
    pid = await marker.pid()
    guard = json.loads(said.read_text().splitlines()[0])["guard"]
    try:
        os.kill(guard, signal.SIGSTOP)
        worker.kill()
        await worker.wait()
        await asyncio.sleep(0.5)  # time in which it would be gone
        assert psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    finally:
        os.kill(guard, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
