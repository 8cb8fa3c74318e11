"""How the API's work reaches the database: within a time, tried again, alone or as a part of one transaction.

Invariant: every call is bounded by a limit on this side and ends in an answer or in StoreUnavailable. What is done with
the store that `answer_once` and `rehearse` hand out lies in one transaction, the store's whole range of calls included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from datetime import datetime
from typing import Any, Final, LiteralString, Self, TypeVar

import psycopg
from psycopg.rows import dict_row

from ringcron.clock import Clock, DatabaseClock
from ringcron.errors import StoreUnavailable
from ringcron.store.connection import Connection, Connections, transact
from ringcron.store.idempotency import Answer, KeptAnswer, find_answer, hold_key, keep_answer
from ringcron.store.within import OneTransaction
from ringcron_sql import query

T = TypeVar("T")

STATEMENT_SECONDS: Final = 3.0
"""Client-side limit on one use of a connection."""
GIVE_UP_SECONDS: Final = 2.0
"""After this long without a connection no further one is tried for."""
ANSWER_SECONDS: Final = 5.0
"""After this long a caller is told that the store is unavailable."""
PATIENT_SECONDS: Final = 30.0
"""Client-side limit on one use that does the work of many statements."""
_CLOCK_FRESH_SECONDS: Final = 1.0


class Calls:
    """The calls of one API process, whatever they say."""

    def __init__(self, connections: Connections, *, clock: Clock, patient: Connections | None = None) -> None:
        """`patient`: for whole transactions and batches, whose uses may take PATIENT_SECONDS."""
        self._connections = connections
        self._patient = connections if patient is None else patient
        self._clock = clock
        self._database_clock = DatabaseClock(clock)
        self._clock_read_at: float | None = None
        self._working: set[asyncio.Task[Any]] = set()
        self._is_within = False
        """Whether this is the store of one transaction, which nothing that is done through it may leave."""

    async def now(self) -> datetime:
        """The database's clock, read within the last second."""
        if self._clock_read_at is None or self._clock.elapsed() - self._clock_read_at > _CLOCK_FRESH_SECONDS:
            await self.read_clock()
        return self._database_clock.now()

    async def read_clock(self) -> datetime:
        """The database's clock, read now: also the proof that the database answers."""

        async def work(connection: Connection) -> datetime:
            cursor = await connection.execute(query("read_clock"))
            row = await cursor.fetchone()
            assert row is not None
            now: datetime = row[0]
            return now

        now = await self._run(work)
        self._clock_read_at = self._clock.elapsed()
        self._database_clock.observe(now, self._clock_read_at)
        return now

    async def find_answer(self, key_id: bytes) -> KeptAnswer | None:
        """The answer that was given to a request with this idempotency key."""

        async def work(connection: Connection) -> KeptAnswer | None:
            return await find_answer(connection, key_id)

        return await self._run(work)

    async def answer_once(
        self,
        key_id: bytes,
        fingerprint: bytes,
        answer: Callable[[Self], Awaitable[Answer]],
        *,
        wait_seconds: float,
        seconds: float = ANSWER_SECONDS,
    ) -> Answer | KeptAnswer:
        """Do what `answer` does with the store that it is given, and keep its answer, in one transaction; or the answer
        that was kept. An error of `answer` undoes everything and keeps nothing.

        `answer` may be called again after a conflict or a lost connection. Raises IdempotencyInProgress where another
        request holds the key for longer than `wait_seconds`. `seconds`: how long the answer itself may take.
        """

        async def work(connection: Connection, inside: Self) -> Answer | KeptAnswer:
            kept = await hold_key(connection, key_id, fingerprint, wait_seconds=wait_seconds)
            if kept is not None:
                return kept
            given = await answer(inside)
            await keep_answer(connection, key_id, given)
            return given

        return await self._in_transaction(work, wait_seconds + seconds)

    async def rehearse(self, work: Callable[[Self], Awaitable[T]], *, seconds: float = ANSWER_SECONDS) -> T:
        """What `work` comes to with the store that it is given; all that it stores is undone."""

        async def rehearsal(connection: Connection, inside: Self) -> T:
            async with connection.transaction(force_rollback=True):
                return await work(inside)

        return await self._in_transaction(rehearsal, seconds)

    async def _rows(
        self, statement: LiteralString, parameters: Mapping[str, Any], *, prepare: bool
    ) -> list[dict[str, Any]]:
        async def work(connection: Connection) -> list[dict[str, Any]]:
            async with connection.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(statement, parameters, prepare=prepare)
                return await cursor.fetchall()

        return await self._run(work)

    async def _in_transaction(self, work: Callable[[Connection, Self], Awaitable[T]], seconds: float) -> T:
        async def whole(connection: Connection) -> T:
            one = OneTransaction(connection)
            inside = copy(self)
            inside._connections = inside._patient = one
            inside._is_within = True
            try:
                async with connection.transaction():
                    return await work(connection, inside)
            except StoreUnavailable:
                if one.lost is not None:
                    raise one.lost from None  # to be tried again as a whole
                raise

        return await self._run(whole, connections=self._patient, seconds=seconds)

    async def _run(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        connections: Connections | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> T:
        """Do the work within `seconds`, on the store's own connections where no others are given.

        Where a server is frozen the connection is cut and another is tried for, which takes longer than a caller should
        wait: the caller is told, and the work ends by itself. Cancelling it would wait for that server once more.
        """
        task = asyncio.create_task(self._transact(work, connections or self._connections))
        self._working.add(task)
        task.add_done_callback(self._ended)
        done, _ = await asyncio.wait((task,), timeout=seconds)
        if not done:
            raise StoreUnavailable(f"the database did not answer within {seconds:g} s")
        return await task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._working.discard(task)
        if not task.cancelled():
            task.exception()  # seen: nobody may be waiting for it any more

    async def _transact(self, work: Callable[[Connection], Awaitable[T]], connections: Connections) -> T:
        try:
            return await transact(connections, work, repeatable=True, give_up_after=GIVE_UP_SECONDS, clock=self._clock)
        except psycopg.OperationalError as error:
            # Conflicts that did not end, a limit of the server's own, a lock not had: trying again later is the answer.
            raise StoreUnavailable(f"the database did not finish in time: SQLSTATE {error.sqlstate}") from error
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            raise StoreUnavailable("the database has no schema that this version knows: migrate it") from error
