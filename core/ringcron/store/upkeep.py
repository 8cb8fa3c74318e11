"""Partition upkeep: days are carved before they come, old days dropped, and what little lies before them swept.

Invariant: if upkeep stops, rows land in the far partition and are found there as everywhere: slower, never lost. The
database decides what there is to do: its catalog says how a table is laid out, its clock which day it is.

`layout` decides the next change, `repartition` carries it out; this is the loop around them. A table whose lock could
not be had is left alone for a minute, so that traffic does not wait behind one try after another.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg

from ringcron.clock import Clock
from ringcron.store.connection import Connection, Connections, transact
from ringcron.store.idempotency import KEPT_SECONDS
from ringcron.store.layout import Close, Partition, Split, midnight, next_close, next_split, partition_name
from ringcron.store.repartition import JOBS, LIVE_LIMIT, RUNS, SKIPS, Busy, Change, Repartition, Table
from ringcron_sql import query

SWEEPS: Final = 20
"""How many times in one step up to a thousand rows are deleted from a first partition."""

_BEFORE_ALL_IDS: Final = UUID(int=0)


class Upkeep:
    """The upkeep of one database. Keep one: it remembers which table is to be left alone for a while."""

    def __init__(
        self,
        connections: Connections,
        clock: Clock,
        *,
        days_ahead: int,
        keep_runs_seconds: float,
        keep_jobs_seconds: float,
        keep_runs_bytes: int | None,
        retry_seconds: float = 60.0,
    ) -> None:
        """`connections` must allow a use of 30 s and more. Ended jobs, and runs and skips, stay for the given seconds
        and until their day is as old as that, audit entries for the seconds of runs; the oldest days of runs go before
        that while runs take more than `keep_runs_bytes`, today's never. `retry_seconds`: how long a table is left alone
        that gave us no lock."""
        self._connections = connections
        self._clock = clock
        self._repartition = Repartition(connections, clock)
        self._days_ahead = days_ahead
        self._keep = {
            JOBS: timedelta(seconds=keep_jobs_seconds),
            RUNS: timedelta(seconds=keep_runs_seconds),
            SKIPS: timedelta(seconds=keep_runs_seconds),
        }
        self._keep_runs_bytes = keep_runs_bytes
        self._retry_seconds = retry_seconds
        self._not_before: dict[Table, float] = {}
        self._reported: set[str] = set()

    async def step(self) -> list[str]:
        """Do all that there is to do, and say what was done, one sentence each.

        A table that fails does not keep the others from theirs: the first error is raised at the end. Raises
        StoreUnavailable at once if the database is gone.
        """
        done: list[str] = []
        failed: list[psycopg.Error] = []
        for table in (JOBS, RUNS, SKIPS):
            try:
                await self._repartition_all(table, done)
                await self._sweep(table, done)
            except psycopg.Error as error:
                failed.append(error)
        for sweep in (self._sweep_answers, self._sweep_audit):
            try:
                await sweep(done)
            except psycopg.Error as error:
                failed.append(error)
        if failed:
            raise failed[0]
        return done

    async def _repartition_all(self, table: Table, done: list[str]) -> None:
        if self._clock.elapsed() < self._not_before.get(table, 0.0):
            return
        kept: set[str] = set()
        try:
            while True:
                partitions, now = await self._repartition.read(table)
                split = next_split(partitions, now, self._days_ahead, table.months_ahead)
                if split is not None:
                    done.append(_carved(table, split, await self._repartition.split(table, split)))
                    continue
                close = await self._next_close(table, partitions, now, kept)
                if close is None:
                    return
                change = await self._close(table, close)
                if change is None:
                    kept.add(close.partition.name)
                    done.extend(self._report_kept(close.partition))
                else:
                    done.append(_dropped(table, close, change))
        except Busy:
            return
        except psycopg.errors.LockNotAvailable:
            self._not_before[table] = self._clock.elapsed() + self._retry_seconds
            done.append(f"{table.name}: no lock to be had beside traffic; next try in {self._retry_seconds:g} s")

    async def _next_close(
        self, table: Table, partitions: list[Partition], now: datetime, kept: set[str]
    ) -> Close | None:
        close = next_close(partitions, now - self._keep[table], kept)
        if close is None and table is RUNS and self._keep_runs_bytes is not None:
            sizes = await self._run("size_partitions", {"table": table.name})
            if sum(size for _, size in sizes) > self._keep_runs_bytes:
                return next_close(partitions, midnight(now))
        return close

    async def _close(self, table: Table, close: Close) -> Change | None:
        if table.holds_jobs:
            await self._sweep_keys(close.partition)
        return await self._repartition.close(table, close)

    async def _sweep_keys(self, day: Partition) -> None:
        after = _BEFORE_ALL_IDS
        while rows := await self._run("sweep_keys", {"from_at": day.lower, "until_at": day.upper, "after": after}):
            after = rows[0][0]

    async def _sweep(self, table: Table, done: list[str]) -> None:
        partitions, now = await self._repartition.read(table)
        bounds = {"until_at": partitions[0].upper, "before": now - self._keep[table]}
        swept = await self._sweep_by(f"sweep_past_{table.name}", bounds)
        if swept:
            done.append(f"{table.name}: swept {swept} old rows out of {partitions[0].name}")

    async def _sweep_answers(self, done: list[str]) -> None:
        swept = await self._sweep_by("sweep_idempotency_keys", {"kept_seconds": KEPT_SECONDS})
        if swept:
            done.append(f"idempotency_keys: swept {swept} answers older than a day")

    async def _sweep_audit(self, done: list[str]) -> None:
        swept = await self._sweep_by("sweep_audit_log", {"kept_seconds": self._keep[RUNS].total_seconds()})
        if swept:
            done.append(f"audit_log: swept {swept} old entries")

    async def _sweep_by(self, name: str, parameters: dict[str, Any]) -> int:
        swept = 0
        for _ in range(SWEEPS):
            ((count,),) = await self._run(name, parameters)
            swept += count
            if count == 0:
                break
        return swept

    async def _run(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async def work(connection: Connection) -> list[tuple[Any, ...]]:
            cursor = await connection.execute(query(name), parameters, prepare=False)
            return await cursor.fetchall()

        return await transact(self._connections, work, repeatable=True, give_up_after=0.0, clock=self._clock)

    def _report_kept(self, day: Partition) -> list[str]:
        if day.name in self._reported:
            return []
        self._reported.add(day.name)
        return [f"jobs: kept {day.name}, more than {LIVE_LIMIT} of its jobs are due or claimed"]


def _carved(table: Table, split: Split, change: Change) -> str:
    return (
        f"{table.name}: carved {partition_name(table.name, split.earlier)} up to {split.at:%Y-%m-%d}, {_cost(change)}"
    )


def _dropped(table: Table, close: Close, change: Change) -> str:
    return f"{table.name}: dropped {close.partition.name}, {_cost(change)}"


def _cost(change: Change) -> str:
    return f"{change.rows_moved} rows moved, traffic stopped for {change.stopped_seconds * 1000:.0f} ms"
