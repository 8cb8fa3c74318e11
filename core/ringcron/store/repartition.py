"""Changes of the layout of a partitioned table, each in one transaction beside traffic.

Invariant: no row is ever out of sight or lost. A change first stops traffic on the whole partitioned table, reads the
catalog again, and goes on only if the layout is still the one that it was planned for. So several coordinators may try
the same change at once, and one may die at any point of it.

The order of locks is the point (the other way round, nothing gets through at 200 statements/s):

    advisory lock            one change at a time; another's turn is not waited for
    the new partition        created empty, seen by nobody
    the partition below      SHARE UPDATE EXCLUSIVE, up to 10 s: evicts autovacuum, stops no traffic
    the partitioned table    ACCESS EXCLUSIVE, up to 200 ms: traffic queues behind this wait, so it is short
    everything else          free by now: every statement comes through the partitioned table
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from psycopg import sql

from ringcron.clock import Clock
from ringcron.store.connection import Connection, Connections, transact
from ringcron.store.layout import Bounds, Close, Partition, Split, partition_name
from ringcron_sql import query

T = TypeVar("T")

LIVE_LIMIT: Final = 1000
"""An old day with at most so many jobs that are due or claimed is dropped all the same: they move to the partition
before it. With more it stays, for moving them would stop traffic for long."""

_EVICT_MILLISECONDS: Final = 10_000
_STOP_MILLISECONDS: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A partitioned table, and the column that it is partitioned by."""

    name: str
    column: str
    holds_jobs: bool = False
    months_ahead: int = 0


JOBS: Final = Table(name="jobs", column="next_run_at", holds_jobs=True, months_ahead=12)
RUNS: Final = Table(name="runs", column="claimed_at")
SKIPS: Final = Table(name="skips", column="decided_at")


class Busy(Exception):
    """Another upkeep is at work, or has just been."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What a change did."""

    rows_moved: int
    stopped_seconds: float  # how long traffic on the table was stopped


class Repartition:
    """Carries out the changes of one database's layout.

    Both changes raise Busy, or psycopg.errors.LockNotAvailable where traffic held its locks longer than we may wait.
    """

    def __init__(self, connections: Connections, clock: Clock) -> None:
        """`connections` must allow a use of 30 s and more."""
        self._connections = connections
        self._clock = clock

    async def read(self, table: Table) -> tuple[list[Partition], datetime]:
        """The layout of a table in order, and the database's now."""

        async def work(connection: Connection) -> tuple[list[Partition], datetime]:
            async with connection.transaction():
                statements = _Statements(connection, table)
                await statements.limit(_EVICT_MILLISECONDS)
                return await statements.layout()

        return await self._transact(work)

    async def split(self, table: Table, split: Split) -> Change:
        """Cut a partition in two. The side with fewer rows moves to a new table, the other one keeps its own."""

        async def work(connection: Connection) -> Change:
            statements = _Statements(connection, table)
            old = split.partition.name
            ((earlier, later),) = await statements.run("count_sides", {"at": split.at}, partition=old)
            stays, leaves, move = split.later, split.earlier, "move_earlier_rows"
            if later < earlier:
                stays, leaves, move = split.earlier, split.later, "move_later_rows"
            stay_name, new = partition_name(table.name, stays), partition_name(table.name, leaves)
            async with connection.transaction():
                partitions = await self._begin(statements)
                created = f"{table.name}_new" if any(new == partition.name for partition in partitions) else new
                await statements.run("create_partition", partition=created)
                await statements.run("evict_autovacuum", partition=old)
                stopped_at = await self._stop(statements, split.partition)
                await statements.run("detach_partition", partition=old)
                await statements.attach(created, leaves)
                ((rows,),) = await statements.run(move, {"at": split.at}, source=old, target=created)
                await statements.attach(old, stays)
                await statements.rename(old, stay_name)
                await statements.rename(created, new)
            return Change(rows_moved=rows, stopped_seconds=self._clock.elapsed() - stopped_at)

        return await self._transact(work)

    async def close(self, table: Table, close: Close) -> Change | None:
        """Drop a partition, its live jobs moved to the one before it. None: it has too many of them, and stays."""

        async def work(connection: Connection) -> Change | None:
            statements = _Statements(connection, table)
            old, before = close.partition.name, close.before.name
            rows = 0
            async with connection.transaction():
                await self._begin(statements)
                if table.holds_jobs and await statements.count_live(old) > LIVE_LIMIT:
                    return None
                await statements.run("evict_autovacuum", partition=old)
                await statements.run("evict_autovacuum", partition=before)
                stopped_at = await self._stop(statements, close.partition, close.before)
                if table.holds_jobs and await statements.count_live(old) > LIVE_LIMIT:
                    return None
                await statements.run("detach_partition", partition=before)
                if table.holds_jobs:
                    ((rows,),) = await statements.run("move_live_jobs", source=old, target=before)
                await statements.run("drop_partition", partition=old)
                bounds = (close.before.lower, close.partition.upper)
                await statements.attach(before, bounds)
                await statements.rename(before, partition_name(table.name, bounds))
            return Change(rows_moved=rows, stopped_seconds=self._clock.elapsed() - stopped_at)

        return await self._transact(work)

    async def _begin(self, statements: _Statements) -> list[Partition]:
        await statements.limit(_EVICT_MILLISECONDS)
        if await statements.run("lock_upkeep") != [(True,)]:
            raise Busy
        return (await statements.layout())[0]

    async def _stop(self, statements: _Statements, *planned: Partition) -> float:
        """Stop traffic; from when on, on the clock. Busy if the partitions are no longer as they were planned for."""
        await statements.limit(_STOP_MILLISECONDS)
        await statements.run("lock_partitioned")
        stopped_at = self._clock.elapsed()
        partitions, _ = await statements.layout()
        if any(partition not in partitions for partition in planned):
            raise Busy
        return stopped_at

    async def _transact(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        # Repeatable: a second try reads the layout again and finds the first one's change.
        return await transact(self._connections, work, repeatable=True, give_up_after=0.0, clock=self._clock)


class _Statements:
    """The statements of upkeep, on one connection and one table."""

    def __init__(self, connection: Connection, table: Table) -> None:
        self._connection = connection
        self._table = table

    async def run(
        self, name: str, parameters: Mapping[str, Any] | None = None, **parts: str | sql.Composable
    ) -> list[tuple[Any, ...]]:
        """Run a query file; the names in braces in it are filled in from the table and from `parts`."""
        names: dict[str, sql.Composable] = {
            "table": sql.Identifier(self._table.name),
            "column": sql.Identifier(self._table.column),
        }
        names |= {key: sql.Identifier(part) if isinstance(part, str) else part for key, part in parts.items()}
        cursor = await self._connection.execute(sql.SQL(query(name)).format(**names), parameters, prepare=False)
        return await cursor.fetchall() if cursor.description is not None else []

    async def limit(self, lock_milliseconds: int) -> None:
        await self.run("limit_transaction", {"lock_milliseconds": lock_milliseconds})

    async def layout(self) -> tuple[list[Partition], datetime]:
        rows = await self.run("list_partitions", {"table": self._table.name})
        return [Partition(name=name, lower=lower, upper=upper) for name, lower, upper, _ in rows], rows[0][3]

    async def attach(self, partition: str, bounds: Bounds) -> None:
        lower, upper = bounds
        await self.run(
            "attach_partition",
            partition=partition,
            lower=sql.SQL("minvalue") if lower is None else sql.Literal(lower),
            upper=sql.SQL("maxvalue") if upper is None else sql.Literal(upper),
        )

    async def rename(self, partition: str, new_name: str) -> None:
        if partition != new_name:
            await self.run("rename_partition", partition=partition, new_name=new_name)

    async def count_live(self, partition: str) -> int:
        await self.run("prefer_indexes")
        ((count,),) = await self.run("count_live_jobs", {"limit": LIVE_LIMIT + 1}, partition=partition)
        return int(count)
