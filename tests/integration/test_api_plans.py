"""The plan of each of the API's statements: partitions touched, index used; also where statistics know of no row."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest

from ringcron import changes
from ringcron.models import PARKED, Definition, JobState
from ringcron.store.api import SESSION_OPTIONS
from ringcron.store.audit import parameters_of
from ringcron.store.bounds import near
from ringcron.store.changing import _parameters as change_parameters
from ringcron.store.creating import NewJob, read_job, record_of
from ringcron.store.listing import JobFilter, page_queries
from ringcron_sql import query
from tests.support.days import carve_days, day_names
from tests.support.jobs import add_many, database_now
from tests.support.plans import Plan, explain

pytestmark = pytest.mark.store

Connection = psycopg.AsyncConnection[Any]
ID = UUID("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e")
BEFORE, AFTER = 6, 4
ENDED_A_DAY = 2000


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(
        database_url, autocommit=True, options=SESSION_OPTIONS
    ) as connection:
        for table in ("jobs", "runs", "skips"):
            await carve_days(connection, table, await database_now(connection), before=BEFORE, after=AFTER)
        yield connection


@pytest.fixture
async def full(connection: Connection) -> Connection:
    """Statistics that know what is there."""
    await fill(connection)
    await connection.execute("analyze")
    return connection


async def fill(connection: Connection) -> None:
    """Days that are over, full of jobs that have ended; jobs that wait, near and far; a few of each other state."""
    for day in range(1, BEFORE + 1):
        await add_many(connection, ENDED_A_DAY, due_in=-86400.0 * day)
    await connection.execute("update jobs set state = 'done'")
    await add_many(connection, 30, due_in=-86400.0 * 3)
    for due_in in (-5.0, 600.0, 86400.0 * 2, 86400.0 * 30):
        await add_many(connection, 300, due_in=due_in)
    for state in ("paused", "dead"):
        await connection.execute(
            "update jobs set state = %s, next_run_at = %s where id in "
            "(select id from jobs where state = 'due' and next_run_at > now() + interval '9 days' limit 20)",
            (state, PARKED),
        )
    await connection.execute("update jobs set name = 'n' where id in (select id from jobs where slot < 3)")
    await connection.execute("insert into job_tags select 't', id from jobs where slot = 5")
    await connection.execute("insert into job_keys select 'k' || n, gen_random_uuid() from generate_series(1, 2000) n")


@pytest.fixture(params=["statistics say that nothing is there", "true statistics"])
async def any_statistics(request: pytest.FixtureRequest, connection: Connection) -> Connection:
    if request.param == "true statistics":
        await fill(connection)
        await connection.execute("analyze")
    else:
        await connection.execute("analyze")
        await fill(connection)
    return connection


async def days(connection: Connection, table: str, first: int, last: int) -> set[str]:
    """The day partitions from `first` days from today to `last`, both included."""
    now = await database_now(connection)
    return day_names(table, *(now + timedelta(days=day) for day in range(first, last + 1)))


async def partitions(connection: Connection, table: str) -> set[str]:
    return await days(connection, table, -BEFORE, AFTER) | {f"{table}_past", f"{table}_far"}


def rows_read(plan: Plan) -> int:
    """With `analyze`: rows that all scans read together."""
    scans = [node for node in plan.nodes() if node["Node Type"].endswith("Scan") and "Relation Name" in node]
    return round(sum(n["Actual Loops"] * (n["Actual Rows"] + n.get("Rows Removed by Filter", 0)) for n in scans))


async def generic(connection: Connection, name: str, parameters: dict[str, Any]) -> Plan:
    """The cached generic plan, as a prepared statement by id gets it; run, and taken back."""
    await connection.execute("set plan_cache_mode = force_generic_plan")
    try:
        return await explain(connection, query(name), parameters, analyze=True)
    finally:
        await connection.execute("reset plan_cache_mode")


async def one_of(connection: Connection, state: str) -> UUID:
    row = await (await connection.execute("select id from jobs where state = %s limit 1", (state,))).fetchone()
    assert row is not None
    job_id: UUID = row[0]
    return job_id


@pytest.mark.parametrize("name", ["get_job", "lock_job"])
async def test_a_look_up_by_id_probes_the_primary_key_of_every_partition(full: Connection, name: str) -> None:
    plan = await generic(full, name, {"id": await one_of(full, "due")})
    assert plan.partitions == await partitions(full, "jobs")
    assert plan.indexes == {"jobs_pkey"}
    assert rows_read(plan) == 1  # a partition without a row may be "read from end to end"


async def test_cancel(full: Connection) -> None:
    plan = await generic(full, "cancel_job", {"id": await one_of(full, "due"), **parameters_of(None)})
    assert plan.partitions_of("jobs") == await partitions(full, "jobs")
    assert plan.indexes >= {"jobs_pkey", "job_keys_by_job", "job_keys_pkey"}
    assert plan.sequential.isdisjoint({"job_keys"} | await days(full, "jobs", -BEFORE, 0))
    assert rows_read(plan) < 50  # a few tags


async def test_the_cancel_of_a_run_goes_by_id(any_statistics: Connection) -> None:
    job_id = await one_of(any_statistics, "due")
    await any_statistics.execute(
        "update jobs set state = 'claimed', lease_owner = 'w', lease_until = now(), claimed_at = now() where id = %s",
        (job_id,),
    )
    plan = await generic(any_statistics, "request_cancel", {"id": job_id, "generation": 0})
    assert plan.indexes == {"jobs_pkey"}
    plan = await generic(any_statistics, "find_run", {"id": job_id, "generation": 1})
    assert plan.partitions == await partitions(any_statistics, "runs")
    assert rows_read(plan) == 0


async def test_a_change_stays_in_one_partition(any_statistics: Connection) -> None:
    job_id = await one_of(any_statistics, "due")
    job = await read_job(any_statistics, job_id)
    assert job is not None
    assert job.next_run_at is not None
    change = changes.trigger(job, await database_now(any_statistics))
    parameters = change_parameters(change, held_next_run_at=job.next_run_at)
    plan = await explain(any_statistics, query("change_job"), parameters, analyze=True)
    looked = [node for node in plan.nodes() if "Scan" in node["Node Type"] and "Relation Name" in node]
    assert len({node["Relation Name"] for node in looked if node["Relation Name"].startswith("jobs_")}) == 1


@pytest.mark.parametrize("tag", [None, "t"])
async def test_dead_jobs_are_redriven_from_the_far_partition(any_statistics: Connection, tag: str | None) -> None:
    filters = {"after": UUID(int=0), "handler": None, "tag": tag, "fingerprint": None, "limit": 500}
    plan = await explain(any_statistics, query("list_dead_jobs"), filters, analyze=True)
    assert plan.partitions == {"jobs_far"}
    assert "jobs_set_aside" in plan.indexes
    ids = [await one_of(any_statistics, "dead")]
    plan = await explain(any_statistics, query("lock_dead_jobs"), {"ids": ids}, analyze=True)
    assert plan.partitions == {"jobs_far"}
    assert plan.sequential == set()
    assert rows_read(plan) == 1
    now = (await database_now(any_statistics)).isoformat()
    rows = orjson.dumps([{"id": str(ids[0]), "next_run_at": now, "decided_until": now, "skip_count": 0}]).decode()
    plan = await explain(any_statistics, query("redrive_jobs"), {"rows": rows}, analyze=True)
    looked = [node for node in plan.nodes() if node.get("Alias", "").startswith("j") and "Scan" in node["Node Type"]]
    assert {node["Relation Name"] for node in looked} == {"jobs_far"}


async def new_job(connection: Connection) -> NewJob:
    now = await database_now(connection)
    definition = Definition(handler="noop", payload={}, run_at=now, tags=("a",))
    return NewJob(id=ID, definition=definition, created_at=now, scheduled_for=now)


async def test_insert_touches_no_index_but_for_its_own_entries(any_statistics: Connection) -> None:
    rows = orjson.dumps([record_of(await new_job(any_statistics), ID)]).decode()
    plan = await explain(any_statistics, query("insert_jobs"), {"jobs": rows}, analyze=True)
    assert plan.tables == {"jobs", "job_tags", "job_alerts"}
    assert {name for name in plan.indexes if name.startswith("jobs")} == set()


async def test_keys_are_found_by_key(full: Connection) -> None:
    for name in ("hold_keys", "point_keys"):
        plan = await explain(full, query(name), {"keys": ["k1", "k2"], "ids": [ID, UUID(int=1)]})
        assert plan.sequential == set()
        assert plan.indexes <= {"job_keys_pkey"}


async def test_the_holders_of_keys_are_found_one_by_one(any_statistics: Connection) -> None:
    ids = [await one_of(any_statistics, state) for state in ("due", "done", "paused")]
    for name in ("lock_holders", "find_holders"):
        assert (await explain(any_statistics, query(name), {"ids": ids})).indexes == {"jobs_pkey"}
        plan = await explain(any_statistics, query(name), {"ids": ids[:1]}, analyze=True)
        assert rows_read(plan) == 1  # of one look-up: of several, 15 shows the mean, in whole rows


async def test_what_was_handed_back_is_looked_up_by_id(any_statistics: Connection) -> None:
    plan = await explain(
        any_statistics, query("find_handed_back"), {"ids": [await one_of(any_statistics, "due")]}, analyze=True
    )
    assert plan.partitions_of("runs") == await partitions(any_statistics, "runs")
    assert plan.indexes >= {"jobs_pkey"}  # no run is stored: their partitions are empty
    assert rows_read(plan) <= 1


async def test_replace_stays_in_one_partition(any_statistics: Connection) -> None:
    new = await new_job(any_statistics)
    skip: dict[str, Any] = {"skips": []}
    held = {"held_next_run_at": new.next_run_at, "decided_until": new.now}
    rows = orjson.dumps([record_of(new, await one_of(any_statistics, "due")) | held | skip]).decode()
    parameters = {"rows": rows, "first_at": new.next_run_at, "last_at": new.next_run_at}
    await any_statistics.execute("set enable_seqscan = off")  # as by prefer_indexes
    plan = await explain(any_statistics, query("replace_jobs"), parameters, analyze=True)
    scanned = {
        node["Relation Name"] for node in plan.nodes() if "Scan" in node["Node Type"] and "Relation Name" in node
    }
    assert {name for name in scanned if name.startswith("jobs_")} == await days(any_statistics, "jobs", 0, 0)
    assert not {name for name in plan.sequential if name.startswith("jobs_")}


async def plans_of(connection: Connection, wanted: JobFilter, *, by_time: bool = False, limit: int = 50) -> list[Plan]:
    now = await database_now(connection)
    pages = page_queries(wanted, after=None, by_time=by_time, limit=limit, with_payload=False, now=now)
    return [await explain(connection, page.statement, page.parameters, analyze=True) for page in pages]


async def test_the_first_page_of_all_jobs_reads_a_page_and_no_more(full: Connection) -> None:
    (plan,) = await plans_of(full, JobFilter())
    assert plan.partitions == await partitions(full, "jobs")
    assert plan.indexes >= {"jobs_pkey"}
    assert rows_read(plan) <= 50 + len(plan.partitions)


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.DEAD])
async def test_parked_jobs_are_looked_for_in_the_far_partition_alone(
    any_statistics: Connection, state: JobState
) -> None:
    (plan,) = await plans_of(any_statistics, JobFilter(state=state))
    assert plan.partitions == {"jobs_far"}
    assert plan.indexes == {"jobs_set_aside"}
    assert rows_read(plan) <= 40


async def test_ended_jobs_are_not_looked_for_in_the_future(any_statistics: Connection) -> None:
    for state in (JobState.DONE, JobState.CANCELLED):
        (plan,) = await plans_of(any_statistics, JobFilter(state=state))
        assert plan.partitions <= await days(any_statistics, "jobs", -BEFORE, 1) | {"jobs_past"}
    assert "jobs_set_aside" in plan.indexes
    assert rows_read(plan) == 0  # nothing was cancelled


@pytest.mark.parametrize(
    "wanted",
    [
        JobFilter(state=JobState.DUE),
        JobFilter(state=JobState.DUE, handler="noop"),
        JobFilter(state=JobState.CLAIMED),
        JobFilter(due_before=datetime.fromisoformat("2999-01-01T00:00:00Z")),
    ],
)
async def test_jobs_that_wait_are_listed_without_those_that_have_ended(full: Connection, wanted: JobFilter) -> None:
    (plan,) = await plans_of(full, wanted)
    over = await days(full, "jobs", -BEFORE, -1)
    assert over.isdisjoint(plan.sequential)
    assert rows_read(plan) < ENDED_A_DAY
    assert ("jobs_claimed" in plan.indexes) is (wanted.state is not JobState.DUE)


async def test_a_window_prunes(any_statistics: Connection) -> None:
    now = await database_now(any_statistics)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    window = JobFilter(due_after=midnight + timedelta(days=2), due_before=midnight + timedelta(days=3))
    (plan,) = await plans_of(any_statistics, window)
    joined = [node for node in plan.nodes() if node.get("Alias", "").startswith("j") and "Relation Name" in node]
    assert {node["Relation Name"] for node in joined} == await days(any_statistics, "jobs", 2, 2)


async def test_a_name_is_found_by_its_index(full: Connection) -> None:
    (plan,) = await plans_of(full, JobFilter(name="n"), limit=500)
    assert plan.indexes == {"jobs_named"}
    assert rows_read(plan) <= 40  # those that have it


async def test_a_tag_is_walked_lazily(any_statistics: Connection) -> None:
    (plan,) = await plans_of(any_statistics, JobFilter(tag="t"), limit=2)
    assert "job_tags" in plan.tables
    jobs = [n for n in plan.nodes() if n.get("Relation Name", "").startswith("jobs_")]
    assert max(node["Actual Loops"] for node in jobs) <= 3
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in jobs) <= 3


async def test_by_time_today_comes_first(any_statistics: Connection) -> None:
    first, second, rest = await plans_of(any_statistics, JobFilter(), by_time=True)
    begun = {node["Relation Name"] for node in first.nodes() if node.get("Alias", "").startswith("j")}
    assert begun <= await days(any_statistics, "jobs", -BEFORE, 0) | {"jobs_past"}
    later = {node["Relation Name"] for node in second.nodes() if node.get("Alias", "").startswith("j")}
    assert later == await days(any_statistics, "jobs", 1, AFTER) | {"jobs_far"}
    assert rest.subplans_removed == 0


async def test_runs_and_skips_prune_to_the_life_of_the_job(any_statistics: Connection) -> None:
    now = await database_now(any_statistics)
    life = {"id": ID, "from_at": now - timedelta(days=1), "until_at": now + timedelta(days=1), "limit": 51}
    runs = await explain(any_statistics, query("list_runs"), {**life, "before": 2**63 - 1}, analyze=True)
    assert runs.partitions_of("runs") == await days(any_statistics, "runs", -1, 1)
    assert runs.sequential <= runs.partitions_of("runs") | {"jobs_past", "jobs_far"} | runs.partitions_of("jobs")
    assert rows_read(runs) == 0
    place = {"before_first": PARKED, "before_decided_at": PARKED}
    skips = await explain(any_statistics, query("list_skips"), {**life, **place}, analyze=True)
    assert skips.partitions == await days(any_statistics, "skips", -1, 1)
    assert rows_read(skips) == 0


async def test_runs_newest_first_read_a_page(full: Connection) -> None:
    now = await database_now(full)
    await full.execute(
        "insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id, started_at, "
        "finished_at, outcome) select %s, n, at, 1, at, 'schedule', 'w', at, at, 'failed' "
        "from generate_series(1, 3000) n, lateral (select now() - make_interval(mins => 3000 - n) as at) as t",
        (ID,),
    )
    await full.execute("analyze runs")
    life = {"id": ID, "from_at": now - timedelta(days=5), "until_at": now + timedelta(days=1), "limit": 51}
    plan = await explain(full, query("list_runs"), {**life, "before": 2000}, analyze=True)
    assert plan.indexes == {"runs_pkey", "jobs_pkey"}
    assert rows_read(plan) <= 51 + len(plan.partitions_of("runs"))


@pytest.mark.parametrize("analyzed", [False, True])
async def test_lag_reads_only_what_is_due_of_the_handlers_asked_for(connection: Connection, analyzed: bool) -> None:
    await connection.execute("analyze")
    await fill(connection)
    await add_many(connection, 20_000, due_in=-60, handler="nobody")
    if analyzed:
        await connection.execute("analyze jobs")
    now = await database_now(connection)
    parameters = {"handlers": ["noop", "other"], "until_at": near(now).until_at}
    plan = await explain(connection, query("lag_by_slot"), parameters, analyze=True)
    assert plan.partitions <= await days(connection, "jobs", -BEFORE, 1) | {"jobs_past"}
    assert plan.indexes == {"jobs_due"}
    assert rows_read(plan) == 330
    # The days ahead are pruned by planning, not opened for nothing; but for tomorrow, in the last hours of a day.
    assert plan.subplans_removed <= 1


async def test_workers_by_id(connection: Connection) -> None:
    parameters = {"after": "", "limit": 10, "seen_within": 15.0}
    plan = await explain(connection, query("list_workers"), parameters)
    assert plan.tables == {"workers"}
