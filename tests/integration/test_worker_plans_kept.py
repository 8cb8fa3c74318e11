"""The plans of the worker's statements that were made when a day held few jobs, or none: they are kept until its
statistics change, and must still be right when thousands more have come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from ringcron.store.completing import days_of
from ringcron.store.link import PINNED_PLANS
from ringcron.store.pinned import pinned
from tests.support.days import carve_days, day_names
from tests.support.jobs import add_many, database_now
from tests.support.plans import explain_prepared
from tests.support.worker_statements import (
    bounded,
    claim_parameters,
    completion_parameters,
    held,
    no_quadratic_read,
    settlement_parameters,
    span,
)

pytestmark = pytest.mark.store

DUE = 3000
CLAIMED = 250
Parameters = Callable[[psycopg.AsyncConnection[Any]], Awaitable[Mapping[str, Any]]]


async def claiming(connection: psycopg.AsyncConnection[Any]) -> Mapping[str, Any]:
    return claim_parameters(hi=4095, batch=CLAIMED) | await bounded(connection)


async def renewing(connection: psycopg.AsyncConnection[Any]) -> Mapping[str, Any]:
    return span(await held(connection)) | {"owner": "w", "lease": 15.0} | await today(connection)


async def reading(connection: psycopg.AsyncConnection[Any]) -> Mapping[str, Any]:
    return span(await held(connection)) | {"owner": "w"} | await today(connection)


async def completing(connection: psycopg.AsyncConnection[Any]) -> Mapping[str, Any]:
    return completion_parameters(await held(connection)) | await today(connection)


async def settling(connection: psycopg.AsyncConnection[Any]) -> Mapping[str, Any]:
    return settlement_parameters(await held(connection)) | await today(connection)


async def reaping(connection: psycopg.AsyncConnection[Any]) -> Mapping[str, Any]:
    return {"expected_now": await database_now(connection), **await bounded(connection)}


async def today(connection: psycopg.AsyncConnection[Any]) -> Mapping[str, datetime]:
    """The same days, and so the same text, whatever is held."""
    now = await database_now(connection)
    return days_of(now - timedelta(minutes=5), now)


async def few(connection: psycopg.AsyncConnection[Any], count: int) -> None:
    """`count` due jobs and two claims, as the statistics know them from then on."""
    now = await database_now(connection)
    for day in day_names("jobs", *(now + timedelta(days=n) for n in (-1, 0, 1))):
        await connection.execute(sql.SQL("alter table {} set (autovacuum_enabled = off)").format(sql.Identifier(day)))
    await add_many(connection, count)
    await claimed(connection, min(count, 2))
    await connection.execute("vacuum (analyze) jobs")


async def claimed(connection: psycopg.AsyncConnection[Any], count: int, *, lease_seconds: float = 9.0) -> None:
    await connection.execute(
        """
        update jobs set state = 'claimed', lease_owner = 'w', lease_until = now() + make_interval(secs => %s),
               claimed_at = now(), lease_generation = 1
        where id in (select id from jobs where state = 'due' and next_run_at < now() limit %s)
        """,
        (lease_seconds, count),
    )


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True, options=PINNED_PLANS) as connection:
        await carve_days(connection, "jobs", await database_now(connection), before=10, after=10)
        yield connection


@pytest.mark.parametrize("before", [0, 3, 300, 2000])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("claim", claiming),
        ("renew_leases", renewing),
        ("read_claimed", reading),
        ("complete_runs", completing),
        ("settle_claims", settling),
        ("reap_leases", reaping),
    ],
)
async def test_a_plan_made_for_few_jobs_is_right_for_many(
    connection: psycopg.AsyncConnection[Any], name: str, parameters: Parameters, before: int
) -> None:
    await few(connection, before)
    writer = await psycopg.AsyncConnection.connect(
        connection.info.dsn, password=connection.info.password, autocommit=True
    )

    async def many() -> Mapping[str, Any]:
        await add_many(writer, DUE)
        await claimed(writer, CLAIMED, lease_seconds=-1.0 if name == "reap_leases" else 9.0)
        return await parameters(writer)

    async with writer:
        given = await parameters(connection)
        plan = await explain_prepared(connection, pinned(name, given), given, analyze=True, planned_before=many)
    assert plan.sequential == set()
    found = [node["Actual Rows"] * node["Actual Loops"] for node in plan.nodes() if "Index Name" in node]
    assert max(found) >= 100, "the statement found nothing to do"
    no_quadratic_read(plan, CLAIMED)
