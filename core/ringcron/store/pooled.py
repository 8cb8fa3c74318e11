"""Behind a transaction pooler, such as PgBouncer in transaction mode: the next transaction may meet another session.

Invariant: with `behind_pooler` nothing of ours outlives a transaction. A connection is opened without startup options,
nothing is prepared, nobody listens; locks and settings are of a transaction, as they are everywhere
(tests/unit/test_statement_texts.py). What startup options say elsewhere, the role must say: it is authoritative here,
and asked at the start of a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ringcron.clock import Clock
from ringcron.store.connection import Connection, transact
from ringcron.store.link import PLANS, Link
from ringcron_sql import query

WORKER_PLANS: Final = {name: value for name, value in PLANS.items() if name != "plan_cache_mode"}
"""Planner settings that the role of a worker needs. Which plans are kept does not matter where none are."""
API_PLANS: Final = {"jit": "off", "max_parallel_workers_per_gather": "0"}
"""The same of the API, which is slow without them, and not wrong."""
ASK_SECONDS: Final = 5.0


async def missing_role_settings(
    url: str, wanted: Mapping[str, str], *, application_name: str, clock: Clock
) -> list[str]:
    """The statements that would give the role of `url`, behind a pooler, those of the `wanted` settings that it lacks.

    Raises StoreUnavailable while the database cannot be asked.
    """

    async def work(connection: Connection) -> list[tuple[str, str, str]]:
        cursor = await connection.execute(query("read_planner_settings"), {"names": list(wanted)})
        return await cursor.fetchall()

    link = Link(url, application_name=application_name, seconds=ASK_SECONDS, behind_pooler=True)
    try:
        rows = await transact(link, work, repeatable=True, give_up_after=0.0, clock=clock)
    finally:
        await link.close()
    return [
        f"alter role {role} set {name} = {wanted[name]};"
        for name, setting, role in sorted(rows)
        if setting != wanted[name]
    ]
