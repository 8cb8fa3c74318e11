"""The lag of the moment, counted once a second for everybody who shows it.

Invariant: one row (`lag_snapshot`) holds what was counted last. Whoever needs it and finds it older than FRESH_SECONDS
locks it and counts; everybody else reads. So the database sees one count a second however many processes and people
look, with a coordinator or without, and none where nobody does. Nothing that keeps a promise depends on it.

What is counted does not grow with the table: of each handler the COUNTED oldest due jobs, the jobs that are claimed, a
capped number of dead ones, and the runs that began since the last count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from ringcron.store.bounds import Bounds, near
from ringcron.store.connection import Connection
from ringcron.store.lag import Lag, SlotLag
from ringcron_sql import query

FRESH_SECONDS: Final = 1.0
COUNTED: Final = 100_000
"""Due jobs of one handler that are counted at most, the oldest: beyond it the count is a lower bound, the lag exact."""
WAITING_COUNTED: Final = 1_000
WAITING_HANDLERS: Final = 200
DEAD_COUNTED: Final = 10_000
SOON_SECONDS: Final = 60.0
PACE_SECONDS: Final = 600
CARRIED_SECONDS: Final = 3
"""What one look finds holds for so many seconds up to it; seconds before that were not looked at."""
SETTLED_SECONDS: Final = 0.5
"""A second's starts are counted this long after its end: claims that began in it have been committed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """A handler that no worker has, and the due jobs that wait for one: WAITING_COUNTED at most."""

    handler: str
    due: int
    lag_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Claims:
    """What a worker has claimed, and the seconds until the first of its leases lapses (negative: it has)."""

    running: int
    lapses_in_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Second by second up to `until`, which is not included: jobs that waited at its end (None: nobody looked), and
    runs that began in it."""

    until: datetime
    due: tuple[int | None, ...] = ()
    started: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """What was counted at `taken_at`, `age_seconds` before it was read."""

    taken_at: datetime
    age_seconds: float
    lag: Lag
    capped: bool = False
    """Whether a handler had COUNTED due jobs or more."""
    waiting: tuple[Waiting, ...] = ()
    claims: Mapping[str, Claims] = field(default_factory=dict)
    dead: int = 0
    due_soon: int = 0
    """Jobs that become due within SOON_SECONDS."""
    pace: Pace

    @property
    def due(self) -> int:
        """Due, unclaimed jobs of handlers that some worker has."""
        return sum(late.due for late in self.lag.slots)

    @property
    def stranded(self) -> tuple[Waiting, ...]:
        """What waits and is not in `lag`: all of it, but where there is no worker at all."""
        shown = {late.handler for late in self.lag.slots}
        return tuple(one for one in self.waiting if one.handler not in shown)

    @property
    def due_at_all(self) -> int:
        """Due, unclaimed jobs of whatever handler."""
        return self.due + sum(one.due for one in self.stranded)

    @property
    def due_capped(self) -> bool:
        """Whether `due_at_all` is only a lower bound."""
        return self.capped or any(one.due >= WAITING_COUNTED for one in self.stranded)

    @property
    def oldest_seconds(self) -> float:
        """How long the oldest of them has waited; 0 where there is none."""
        waits = [late.lag_seconds for late in self.lag.slots] + [one.lag_seconds for one in self.waiting]
        return max(waits, default=0.0)

    @property
    def running(self) -> int:
        return sum(claims.running for claims in self.claims.values())


async def shared_snapshot(connection: Connection, handlers: Sequence[str], *, now: datetime) -> Snapshot:
    """The snapshot, counted anew where it is older than FRESH_SECONDS and nobody else is at it.

    `handlers`: those that live workers have. `now` may be an hour off: it only prunes partitions.
    """
    read = await _read(connection)
    if read is not None and read.age_seconds < FRESH_SECONDS:
        return read
    if read is None:
        await connection.execute(query("add_lag_snapshot"))
    async with connection.transaction():
        cursor = await connection.execute(query("lock_lag_snapshot"), {"age": FRESH_SECONDS})
        held = await cursor.fetchone()
        if held is not None:
            before = _decode(held[0], age_seconds=0.0)
            counted = await _count(connection, handlers, None if before is None else before.pace, near(now))
            await connection.execute(query("write_lag_snapshot"), {"document": _encode(counted)})
            return counted
    latest = await _read(connection) or read
    # Nothing yet, and another process is counting for the first time: count alone, once.
    return latest or await _count(connection, handlers, None, near(now))


async def due_by_second(
    connection: Connection, handlers: Sequence[str], *, ahead_seconds: float, now: datetime, most: int = COUNTED
) -> dict[int, int]:
    """How many jobs of `handlers` become due in each of the next seconds (1: the one that has begun)."""
    parameters = {
        "handlers": list(handlers),
        "ahead": ahead_seconds,
        "until_at": now + timedelta(seconds=ahead_seconds, hours=1),
        "most": most,
    }
    cursor = await connection.execute(query("count_due_by_second"), parameters, prepare=False)
    return dict(await cursor.fetchall())


async def _read(connection: Connection) -> Snapshot | None:
    row = await (await connection.execute(query("read_lag_snapshot"))).fetchone()
    return None if row is None else _decode(row[0], age_seconds=row[1])


async def _count(connection: Connection, handlers: Sequence[str], before: Pace | None, bounds: Bounds) -> Snapshot:
    until = {"until_at": bounds.until_at}
    asked = {**until, "known": list(handlers), "most": WAITING_COUNTED, "limit": WAITING_HANDLERS}
    rows = await _rows(connection, "list_waiting_handlers", asked)
    waiting = tuple(Waiting(handler=handler, due=due, lag_seconds=lag) for handler, due, lag in rows)
    # With no worker at all nothing is runnable; then everything that waits is what people must see.
    shown = list(handlers) or [one.handler for one in waiting]
    rows = await _rows(connection, "lag_of_handlers", {**until, "handlers": shown, "most": COUNTED})
    taken_at: datetime = rows[0][0]
    slots = tuple(
        SlotLag(handler=handler, slot=slot, due=due, lag_seconds=lag)
        for _, handler, slot, due, lag in rows
        if slot is not None
    )
    rows = await _rows(connection, "count_claimed", until)
    claims = {owner: Claims(running=running, lapses_in_seconds=lapses) for owner, running, lapses in rows}
    dead = (await _rows(connection, "count_dead", {"limit": DEAD_COUNTED}))[0][0]
    soon = await due_by_second(connection, handlers, ahead_seconds=SOON_SECONDS, now=taken_at)
    due_by_handler: dict[str, int] = {}
    for late in slots:
        due_by_handler[late.handler] = due_by_handler.get(late.handler, 0) + late.due
    span = span_to_count(before, taken_at)
    started = dict(await _rows(connection, "count_started", {"from_at": span.from_at, "until_at": span.until_at}))
    return Snapshot(
        taken_at=taken_at,
        age_seconds=0.0,
        lag=Lag(taken_at=taken_at, slots=slots),
        capped=any(count >= COUNTED for count in due_by_handler.values()),
        waiting=waiting,
        claims=claims,
        dead=dead,
        due_soon=sum(soon.values()),
        pace=continued(before, span, started, due=sum(due_by_handler.values())),
    )


def span_to_count(before: Pace | None, taken_at: datetime) -> Bounds:
    """The whole seconds whose starts have not been counted yet: PACE_SECONDS at most. Both ends are whole seconds."""
    until = (taken_at - timedelta(seconds=SETTLED_SECONDS)).replace(microsecond=0)
    earliest = until - timedelta(seconds=PACE_SECONDS)
    since = earliest if before is None else min(max(before.until, earliest), until)
    return Bounds(since, until)


def continued(before: Pace | None, span: Bounds, started: Mapping[int, int], *, due: int) -> Pace:
    """`before` and the seconds of `span`, at whose end `due` jobs waited.

    `started`: runs by the second (of the Unix epoch) that they began in.
    """
    first = math.floor(span.from_at.timestamp())
    seconds = range(first, math.floor(span.until_at.timestamp()))
    near_enough = len(seconds) <= CARRIED_SECONDS
    unseen = max(0, len(seconds) - 1)
    kept = before if before is not None and before.until == span.from_at else Pace(until=span.from_at)
    if not seconds:
        return kept
    return Pace(
        until=span.until_at,
        due=(*kept.due, *(due if near_enough else None,) * unseen, due)[-PACE_SECONDS:],
        started=(*kept.started, *(started.get(second, 0) for second in seconds))[-PACE_SECONDS:],
    )


async def _rows(connection: Connection, name: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(query(name), parameters, prepare=False)
    return await cursor.fetchall()


def _encode(snapshot: Snapshot) -> str:
    by_handler: dict[str, list[tuple[int, int, float]]] = {}
    for late in snapshot.lag.slots:
        by_handler.setdefault(late.handler, []).append((late.slot, late.due, round(late.lag_seconds, 3)))
    document = {
        "takenAt": snapshot.taken_at.timestamp(),
        "slots": by_handler,
        "capped": snapshot.capped,
        "waiting": [(one.handler, one.due, one.lag_seconds) for one in snapshot.waiting],
        "claims": {
            owner: (claims.running, round(claims.lapses_in_seconds, 3)) for owner, claims in snapshot.claims.items()
        },
        "dead": snapshot.dead,
        "dueSoon": snapshot.due_soon,
        "until": snapshot.pace.until.timestamp(),
        "due": snapshot.pace.due,
        "started": snapshot.pace.started,
    }
    return orjson.dumps(document).decode()


def _decode(text: str, *, age_seconds: float) -> Snapshot | None:
    """None where there is nothing yet, or what another version wrote."""
    try:
        document = orjson.loads(text)
        counted_at = datetime.fromtimestamp(document["takenAt"], UTC)
        slots = tuple(
            SlotLag(handler=handler, slot=slot, due=due, lag_seconds=lag)
            for handler, rows in document["slots"].items()
            for slot, due, lag in rows
        )
        return Snapshot(
            taken_at=counted_at,
            age_seconds=age_seconds,
            lag=Lag(taken_at=counted_at, slots=slots),
            capped=document["capped"],
            waiting=tuple(
                Waiting(handler=handler, due=due, lag_seconds=lag) for handler, due, lag in document["waiting"]
            ),
            claims={
                owner: Claims(running=running, lapses_in_seconds=lapses)
                for owner, (running, lapses) in document["claims"].items()
            },
            dead=document["dead"],
            due_soon=document["dueSoon"],
            pace=Pace(
                until=datetime.fromtimestamp(document["until"], UTC),
                due=tuple(document["due"]),
                started=tuple(document["started"]),
            ),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
