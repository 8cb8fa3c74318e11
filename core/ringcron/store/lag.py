"""How late the schedule is: due, unclaimed jobs by handler and slot.

Invariant: lag is counted from the jobs table at one instant of the database's clock; it is for people and for scaling,
and nothing that keeps a promise depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ringcron.store.bounds import near
from ringcron.store.connection import Connection
from ringcron_sql import query


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotLag:
    """The due, unclaimed jobs of one handler in one slot; `lag_seconds` is how long the oldest has been due."""

    handler: str
    slot: int
    due: int
    lag_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Lag:
    """Every handler and slot that has due jobs at `taken_at`, by slot. A slot that is missing has none."""

    taken_at: datetime
    slots: tuple[SlotLag, ...]


async def lag_by_slot(connection: Connection, *, handlers: Sequence[str] | None, now: datetime) -> Lag:
    """The lag of `handlers` (None: of all, runnable or not). `now` may be an hour off: it only prunes partitions."""
    parameters = {
        "handlers": None if handlers is None else list(handlers),
        "until_at": near(now).until_at,
    }
    cursor = await connection.execute(query("lag_by_slot"), parameters, prepare=False)
    rows = await cursor.fetchall()
    return Lag(
        taken_at=rows[0][0],
        slots=tuple(
            SlotLag(handler=handler, slot=slot, due=due, lag_seconds=lag)
            for _, handler, slot, due, lag in rows
            if slot is not None
        ),
    )
