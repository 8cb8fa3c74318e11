"""The plan of each of the worker's statements: partitions touched, index used; also where statistics know no claim, or
nothing at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from ringcron.store.bounds import UNBOUNDED, behind
from ringcron.store.link import PINNED_PLANS
from ringcron.store.pinned import pinned
from tests.support.days import carve_days, day_names
from tests.support.jobs import add_many, database_now
from tests.support.plans import Plan, explain_prepared
from tests.support.worker_statements import (
    bounded,
    claim_parameters,
    completion_parameters,
    held,
    near_days,
    no_quadratic_read,
    peek_parameters,
    settlement_parameters,
    span,
)

pytestmark = pytest.mark.store

CLAIMED = 600


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True, options=PINNED_PLANS) as connection:
        await carve_days(connection, "jobs", await database_now(connection), before=10, after=10)
        yield connection


@pytest.fixture
async def stale(connection: psycopg.AsyncConnection[Any]) -> psycopg.AsyncConnection[Any]:
    """Due rows that were analyzed before many of them were claimed: statistics say that nothing is claimed."""
    await add_many(connection, 2000, due_in=-5)
    await add_many(connection, 2000, due_in=86400 * 3)
    await add_many(connection, 2000, due_in=-5, handler="nobody")
    await connection.execute("analyze jobs")
    await connection.execute(
        """
        update jobs set state = 'claimed', lease_owner = 'w', lease_until = now() + interval '9 s', claimed_at = now(),
               lease_generation = 1
        where id in (select id from jobs where state = 'due' and next_run_at < now() and handler = 'noop' limit %s)
        """,
        (CLAIMED,),
    )
    return connection


async def plan_of(
    connection: psycopg.AsyncConnection[Any], name: str, parameters: dict[str, Any], *, analyze: bool = False
) -> Plan:
    """The plan that a worker gets: the bounds in the text, the statement prepared once."""
    return await explain_prepared(connection, pinned(name, parameters), parameters, analyze=analyze)


async def test_claim(stale: psycopg.AsyncConnection[Any]) -> None:
    parameters = claim_parameters() | await bounded(stale)
    plan = await plan_of(stale, "claim", parameters, analyze=True)
    assert plan.partitions <= await near_days(stale)
    assert plan.subplans_removed <= 1  # tomorrow, in the last hours of a day
    assert plan.sequential == set()
    assert plan.indexes == {"jobs_due", "jobs_pkey"}


async def test_claim_planned_before_there_was_anything(connection: psycopg.AsyncConnection[Any]) -> None:
    """A plan is kept until statistics change: it must be the right one also where it was made for an empty table."""
    parameters = claim_parameters(batch=500) | await bounded(connection)
    for name, given in (("claim", parameters), ("peek", peek_parameters(await bounded(connection)))):
        plan = await plan_of(connection, name, given)
        assert plan.partitions <= await near_days(connection)
        assert plan.sequential == set()
        assert "jobs_pkey" not in plan.indexes or name == "claim"
        assert "jobs_due" in plan.indexes


async def test_claim_of_a_quarantined_job(stale: psycopg.AsyncConnection[Any]) -> None:
    parameters = claim_parameters(hi=4095, solo=True, batch=1) | await bounded(stale)
    plan = await plan_of(stale, "claim", parameters)
    assert plan.partitions <= await near_days(stale)
    assert plan.indexes == {"jobs_quarantined", "jobs_pkey"}


async def test_a_backlog_of_a_handler_that_nobody_has_is_not_read(stale: psycopg.AsyncConnection[Any]) -> None:
    await add_many(stale, 20_000, due_in=-60, handler="nobody")
    parameters = claim_parameters(hi=4095, solo=False, batch=10) | await bounded(stale)
    plan = await plan_of(stale, "claim", parameters, analyze=True)
    assert plan.buffers < 500
    assert all(node.get("Rows Removed by Filter", 0) < 100 for node in plan.nodes())


async def test_peek(stale: psycopg.AsyncConnection[Any]) -> None:
    parameters = peek_parameters(await bounded(stale))
    plan = await plan_of(stale, "peek", parameters, analyze=True)
    assert plan.partitions <= await near_days(stale)
    assert plan.sequential == set()
    assert {"jobs_due", "jobs_claimed", "jobs_quarantined"} >= plan.indexes
    assert plan.buffers < 200


async def test_a_peek_that_reaches_back_leaves_out_what_lies_ahead(stale: psycopg.AsyncConnection[Any]) -> None:
    """It is planned anew whenever statistics of one of its partitions change, by every worker."""
    now = await database_now(stale)
    bounds = behind(now)
    parameters = peek_parameters(await bounded(stale)) | {"from_at": bounds.from_at, "until_at": bounds.until_at}
    plan = await plan_of(stale, "peek", parameters)
    back = day_names("jobs", *(now - timedelta(days=n) for n in range(11))) | {"jobs_past"}
    assert plan.partitions == back | await near_days(stale)


async def test_renew(stale: psycopg.AsyncConnection[Any]) -> None:
    rows = await held(stale)
    plan = await plan_of(stale, "renew_leases", span(rows) | {"owner": "w", "lease": 15.0}, analyze=True)
    await only_by_primary_key(stale, plan, len(rows))


async def test_read_claimed(stale: psycopg.AsyncConnection[Any]) -> None:
    rows = await held(stale)
    plan = await plan_of(stale, "read_claimed", span(rows) | {"owner": "w"}, analyze=True)
    await only_by_primary_key(stale, plan, len(rows))


async def test_complete(stale: psycopg.AsyncConnection[Any]) -> None:
    rows = await held(stale)
    parameters = completion_parameters(rows)
    plan = await plan_of(stale, "complete_runs", parameters, analyze=True)
    await only_by_primary_key(stale, plan, len(rows))


async def test_settle(stale: psycopg.AsyncConnection[Any]) -> None:
    rows = await held(stale)
    parameters = settlement_parameters(rows)
    plan = await plan_of(stale, "settle_claims", parameters, analyze=True)
    await only_by_primary_key(stale, plan, len(rows))


async def test_reap(stale: psycopg.AsyncConnection[Any]) -> None:
    parameters = {"expected_now": await database_now(stale), **await bounded(stale)}
    plan = await plan_of(stale, "reap_leases", parameters)
    assert plan.partitions_of("jobs") <= await near_days(stale)
    assert plan.sequential == set()
    assert plan.indexes == {"jobs_claimed", "jobs_pkey"}


async def test_reap_of_nothing_reads_next_to_nothing(stale: psycopg.AsyncConnection[Any]) -> None:
    parameters = {
        "expected_now": await database_now(stale),
        "from_at": UNBOUNDED.from_at,
        "until_at": UNBOUNDED.until_at,
    }
    plan = await plan_of(stale, "reap_leases", parameters, analyze=True)
    assert plan.sequential == set()
    assert plan.buffers < 200


async def test_hand_back(stale: psycopg.AsyncConnection[Any]) -> None:
    parameters = {
        "ids": [],
        "generations": [],
        "owner": "somebody else",
        "claimed_by": UNBOUNDED.until_at,
        "from_at": UNBOUNDED.from_at,
        "until_at": UNBOUNDED.until_at,
    }
    plan = await plan_of(stale, "release_unknown_claims", parameters)
    assert plan.indexes == {"jobs_claimed"}
    assert plan.sequential == set()


async def test_find_landed(stale: psycopg.AsyncConnection[Any]) -> None:
    rows = await held(stale, 3)
    parameters = {
        "ids": [row[0] for row in rows],
        "generations": [row[2] for row in rows],
        "owner": "w",
        "claimed_from": await database_now(stale),
    }
    plan = await plan_of(stale, "find_landed", parameters)
    assert plan.sequential == set()
    assert plan.indexes == {"jobs_pkey", "runs_pkey"}


async def only_by_primary_key(connection: psycopg.AsyncConnection[Any], plan: Plan, rows: int) -> None:
    assert plan.partitions_of("jobs") <= await near_days(connection)
    assert plan.subplans_removed == 0
    assert plan.sequential == set()
    assert plan.indexes == {"jobs_pkey"}
    no_quadratic_read(plan, rows)
