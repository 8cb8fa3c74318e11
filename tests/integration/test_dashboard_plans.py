"""The plans of what the dashboard asks: partitions touched, index used, nothing read that was not asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from ringcron.models import PARKED
from ringcron.store.api import SESSION_OPTIONS
from ringcron.store.bounds import near
from ringcron_sql import query
from tests.support.days import carve_days
from tests.support.jobs import add_many, database_now
from tests.support.plans import explain

pytestmark = pytest.mark.store
Connection = psycopg.AsyncConnection[Any]
AHEAD = 4


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    """Days of ended jobs, thousands that wait in the days ahead, a few that are late, claimed, dead."""
    async with await psycopg.AsyncConnection.connect(
        database_url, autocommit=True, options=SESSION_OPTIONS
    ) as connection:
        now = await database_now(connection)
        for table in ("jobs", "runs"):
            await carve_days(connection, table, now, before=3, after=AHEAD)
        for day in range(1, 4):
            await add_many(connection, 1500, due_in=-86400.0 * day)
        await connection.execute("update jobs set state = 'done'")
        for day in range(1, AHEAD):
            await add_many(connection, 1500, due_in=86400.0 * day)
        await add_many(connection, 1500, due_in=900)
        await add_many(connection, 1500, handler="other", due_in=86400.0)
        await add_many(connection, 1500, due_in=86400.0 * 30)
        await add_many(connection, 300, due_in=-5)
        await connection.execute(
            "update jobs set state = 'claimed', lease_owner = 'w', lease_until = now(), claimed_at = now() "
            "where id in (select id from jobs where state = 'due' and next_run_at < now() limit 20)"
        )
        await connection.execute(
            "update jobs set state = 'dead', next_run_at = %s, dead_reason = 'failed: ' || slot where id in "
            "(select id from jobs where state = 'due' and next_run_at < now() limit 20)",
            (PARKED,),
        )
        await connection.execute(
            "insert into runs select gen_random_uuid(), 1, now() - n * interval '10 ms', 1, now(), 'schedule', 'w', "
            "now(), now(), 'succeeded' from generate_series(1, 20000) n"
        )
        await connection.execute("select brin_summarize_new_values(indexrelid) from pg_index i join pg_class c "
                                 "on c.oid = i.indexrelid where c.relname like 'runs_d%claimed_at_idx'")  # fmt: skip
        await connection.execute("analyze")
        yield connection


def days(table: str, now: datetime, first: int, last: int) -> set[str]:
    return {f"{table}_d{now + timedelta(days=day):%Y%m%d}" for day in range(first, last + 1)}


async def test_lag_reads_the_late_ones_alone(connection: Connection) -> None:
    now = await database_now(connection)
    parameters = {"handlers": ["noop", "other"], "until_at": near(now).until_at, "most": 100}
    plan = await explain(connection, query("lag_of_handlers"), parameters, analyze=True)
    assert plan.indexes == {"jobs_due"}
    assert plan.sequential == set()
    assert plan.partitions.isdisjoint(days("jobs", now, 1 if now.hour < 22 else 2, AHEAD) | {"jobs_far"})
    assert plan.buffers < 200  # of the 300 that are late, 100; of those ahead none
    soon = {"handlers": ["noop"], "ahead": 3600, "until_at": now + timedelta(hours=2), "most": 100}
    plan = await explain(connection, query("count_due_by_second"), soon, analyze=True)
    assert plan.indexes == {"jobs_due"}
    assert plan.buffers < 200


async def test_handlers_are_found_by_leaps(connection: Connection) -> None:
    now = await database_now(connection)
    parameters = {"known": ["noop"], "until_at": now + timedelta(days=2), "most": 50, "limit": 200}
    plan = await explain(connection, query("list_waiting_handlers"), parameters, analyze=True)
    assert plan.indexes == {"jobs_due"}
    assert plan.sequential == set()
    assert plan.buffers < 300  # not the thousands of either handler


async def test_claims_and_starts_and_the_dead_are_counted_by_their_indexes(connection: Connection) -> None:
    now = await database_now(connection)
    until_at = near(now).until_at
    plan = await explain(connection, query("count_claimed"), {"until_at": until_at}, analyze=True)
    assert plan.indexes == {"jobs_claimed"}
    second = now.replace(microsecond=0)
    span = {"from_at": second - timedelta(seconds=1), "until_at": second}
    plan = await explain(connection, query("count_started"), span, analyze=True)
    assert plan.partitions_of("runs") <= days("runs", now, -1, 0)
    assert "runs_by_claim" in plan.indexes
    assert plan.sequential <= {"jobs_past"}  # which is empty
    assert plan.buffers < 150  # of the 20,000 runs a stretch of pages
    plan = await explain(connection, query("count_dead"), {"limit": 10}, analyze=True)
    assert (plan.indexes, plan.partitions) == ({"jobs_set_aside"}, {"jobs_far"})
    groups = {"handler": None, "most": 100, "groups": 10}
    plan = await explain(connection, query("group_dead_jobs"), groups, analyze=True)
    assert (plan.indexes, plan.partitions) == ({"jobs_set_aside"}, {"jobs_far"})
