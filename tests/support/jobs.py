"""Rows put into `jobs` by hand, for tests of the statements."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from ringcron.slots import new_job_id, slot_of

_INSERT = """
insert into jobs (id, slot, next_run_at, state, handler, scheduled_for, decided_until, run_at, schedule, payload,
                  created_at, updated_at)
values (%(id)s, %(slot)s, %(next_run_at)s, %(state)s, %(handler)s, %(scheduled_for)s, %(decided_until)s, %(run_at)s,
        %(schedule)s, %(payload)s, now(), now())
"""


async def database_now(connection: psycopg.AsyncConnection[Any]) -> datetime:
    """The database's clock."""
    row = await (await connection.execute("select clock_timestamp()")).fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


async def add_job(
    connection: psycopg.AsyncConnection[Any],
    *,
    due_in: float = -1.0,
    handler: str = "noop",
    payload: Any = None,
    schedule: Mapping[str, Any] | None = None,
    scheduled_for: datetime | None = None,
    slot: int | None = None,
    **columns: Any,
) -> UUID:
    """A due job, `due_in` seconds from now (negative: overdue). `columns` are set by an UPDATE afterwards."""
    now = await database_now(connection)
    job_id = new_job_id(now)
    due = now + timedelta(seconds=due_in)
    await connection.execute(
        _INSERT,
        {
            "id": job_id,
            "slot": slot_of(job_id) if slot is None else slot,
            "next_run_at": due,
            "state": "due",
            "handler": handler,
            "scheduled_for": scheduled_for or due,
            "decided_until": min(now, scheduled_for or due) - timedelta(microseconds=1),
            "run_at": None if schedule is not None else due,
            "schedule": None if schedule is None else Jsonb(schedule),
            "payload": Jsonb(payload),
        },
    )
    for name, value in columns.items():
        await connection.execute(f"update jobs set {name} = %s where id = %s", (value, job_id))
    return job_id


async def add_many(
    connection: psycopg.AsyncConnection[Any], count: int, *, due_in: float = -1.0, handler: str = "noop"
) -> None:
    """`count` due one-offs in one statement, with random ids and slots."""
    await connection.execute(
        """
        insert into jobs (id, slot, next_run_at, state, handler, scheduled_for, decided_until, run_at, payload,
                          created_at, updated_at)
        select gen_random_uuid(), n %% 4096, at, 'due', %s, at, at - interval '1 second', at, '{}', now(), now()
        from generate_series(1, %s) as n, (select clock_timestamp() + make_interval(secs => %s) as at) as due
        """,
        (handler, count, due_in),
    )


async def row_of(connection: psycopg.AsyncConnection[Any], job_id: UUID) -> dict[str, Any]:
    """The whole row of a job."""
    cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
    await cursor.execute("select * from jobs where id = %s", (job_id,))
    row = await cursor.fetchone()
    assert row is not None
    return row


async def runs_of(connection: psycopg.AsyncConnection[Any], job_id: UUID) -> list[dict[str, Any]]:
    """The run rows of a job, oldest first."""
    cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
    await cursor.execute("select * from runs where job_id = %s order by lease_generation", (job_id,))
    return await cursor.fetchall()


async def skips_of(connection: psycopg.AsyncConnection[Any], job_id: UUID) -> list[dict[str, Any]]:
    """The skip rows of a job, oldest first."""
    cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
    await cursor.execute("select * from skips where job_id = %s order by first", (job_id,))
    return await cursor.fetchall()
