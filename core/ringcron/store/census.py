"""What is counted every few seconds for people and for scaling: jobs due soon, dead jobs, the oldest snapshot.

Invariant: nothing that keeps a promise depends on it, and its cost does not grow with the table: what is counted is a
minute of the schedule, a capped number of dead jobs, the sessions of the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, LiteralString

from ringcron.clock import Clock
from ringcron.store.bounds import near
from ringcron.store.connection import Connection, Connections, transact
from ringcron_sql import query

AHEAD_SECONDS: Final = 60.0
SEEN_WITHIN_SECONDS: Final = 15.0
MOST_DEAD: Final = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Census:
    """`dead` is at most MOST_DEAD."""

    due_soon: int
    dead: int
    oldest_snapshot_seconds: float


async def take_census(connections: Connections, clock: Clock) -> Census:
    """Count. Raises StoreUnavailable."""

    async def work(connection: Connection) -> Census:
        bounds = near(await _one(connection, query("read_clock"), {}))
        soon = {
            "ahead": AHEAD_SECONDS,
            "seen_within": SEEN_WITHIN_SECONDS,
            "from_at": bounds.from_at,
            "until_at": bounds.until_at,
        }
        return Census(
            due_soon=await _one(connection, query("count_due_soon"), soon),
            dead=await _one(connection, query("count_dead"), {"limit": MOST_DEAD}),
            oldest_snapshot_seconds=await _one(connection, query("age_oldest_snapshot"), {}),
        )

    return await transact(connections, work, repeatable=True, give_up_after=0.0, clock=clock)


async def _one(connection: Connection, statement: LiteralString, parameters: dict[str, Any]) -> Any:
    row = await (await connection.execute(statement, parameters, prepare=False)).fetchone()
    assert row is not None
    return row[0]
