"""Parameters of the worker's statements, as tests of their plans give them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import psycopg

from ringcron.store.bounds import near
from ringcron.store.completing import days_of
from tests.support.days import day_names
from tests.support.jobs import database_now
from tests.support.plans import Plan


async def bounded(connection: psycopg.AsyncConnection[Any]) -> dict[str, Any]:
    bounds = near(await database_now(connection))
    return {"from_at": bounds.from_at, "until_at": bounds.until_at}


async def held(connection: psycopg.AsyncConnection[Any], count: int = 500) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(
        """
        select id, next_run_at, lease_generation, scheduled_for, cause
        from jobs where state = 'claimed' order by id limit %s
        """,
        (count,),
    )
    return await cursor.fetchall()


async def near_days(connection: psycopg.AsyncConnection[Any]) -> set[str]:
    """Yesterday, today, and tomorrow where the hours ahead reach into it."""
    bounds = near(await database_now(connection))
    days = (bounds.from_at, bounds.from_at + timedelta(days=1), bounds.until_at - timedelta(microseconds=1))
    return day_names("jobs", *days)


def claim_parameters(**changes: Any) -> dict[str, Any]:
    return {
        "handlers": ["noop"],
        "lo": 0,
        "hi": 1023,
        "overdue": 0.0,
        "solo": False,
        "batch": 50,
        "owner": "w",
        "lease": 15.0,
    } | changes


def peek_parameters(bounds: dict[str, Any]) -> dict[str, Any]:
    return {
        "ranks": [0, 1],
        "handlers": ["noop", "noop"],
        "los": [0, 0],
        "his": [100, 4095],
        "wanted": ["noop"],
        "horizon": 2.0,
        **bounds,
        **{f"arcs_{name}": at for name, at in bounds.items()},
    }


def days(rows: list[tuple[Any, ...]]) -> Mapping[str, datetime]:
    """Whole days, as a worker gives them."""
    return days_of(min(row[1] for row in rows), max(row[1] for row in rows)) if rows else {}


def span(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "ids": [row[0] for row in rows],
        "next_run_ats": [row[1] for row in rows],
        "generations": [row[2] for row in rows],
        **days(rows),
    }


def completion_parameters(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    document = [
        {
            "id": str(row[0]),
            "next_run_at": row[1].isoformat(),
            "lease_generation": row[2],
            "revision": 1,
            "outcome": "succeeded",
            "started_ago": 0.1,
            "finished_ago": 0.0,
            "state": "done",
            "delay": 0,
            "scheduled_for": row[1].isoformat(),
            "cause": "schedule",
            "attempt": 1,
            "decided_until": row[1].isoformat(),
            "give_back": False,
        }
        for row in rows
    ]
    return {"rows": json.dumps(document), "owner": "w", **days(rows)}


def settlement_parameters(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    document = [
        {
            "id": str(row[0]),
            "next_run_at": row[1].isoformat(),
            "lease_generation": row[2],
            "release": False,
            "done": False,
            "old_scheduled_for": row[3].isoformat(),
            "old_cause": row[4],
            "scheduled_for": row[1].isoformat(),
            "cause": "catchup",
        }
        for row in rows
    ]
    return {"rows": json.dumps(document), "owner": "w", **days(rows)}


def no_quadratic_read(plan: Plan, held_rows: int) -> None:
    """No node may read rows in the order of held × claimed."""
    for node in plan.nodes():
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
        read = node["Actual Loops"] * (node["Actual Rows"] + removed)
        assert read <= 5 * held_rows, node
