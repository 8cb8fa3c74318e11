"""Connections, and the one retry wrapper.

Two sources of connections, one interface:

- `Pool` (API, coordinator): a psycopg pool that recovers at once after a restart of the database;
- `Link` (worker): one connection of its own, opened on demand, with a client-side limit on each use.

What is tried again, and why that is safe:

    40001, 40P01          the transaction was rolled back: again, with jitter, at most ATTEMPTS times
    connection lost       nothing is known of the commit: again only where the caller says that its work is repeatable
                          (reads; writes with a fixed id; fenced writes, whose second try finds the first one's effect)
    57P01 and kin         the server is going away: as a lost connection
    anything else         not ours to repeat: raised as it is

A lost connection that is not, or no longer, tried again is raised as StoreUnavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, TypeVar

import psycopg
import psycopg_pool
import structlog
from psycopg.adapt import Buffer
from psycopg.types.datetime import TimestamptzBinaryLoader, TimestamptzLoader

from ringcron import metrics
from ringcron.clock import Clock
from ringcron.errors import StoreUnavailable
from ringcron.models import LATEST

T = TypeVar("T")
Connection = psycopg.AsyncConnection[tuple[Any, ...]]

ATTEMPTS: Final = 5
CONNECT_SECONDS: Final = 5.0

PINNED_PLANS: Final = " ".join(
    f"-c {setting}"
    for setting in (
        "plan_cache_mode=force_custom_plan",  # a generic plan cannot prune by bound parameters
        "enable_seqscan=off",
        "enable_bitmapscan=off",
        "enable_hashjoin=off",
        "enable_mergejoin=off",
        "jit=off",
    )
)
"""Each of a worker's statements has one right plan: nested loops over index scans. No statistics may choose another."""

_log = structlog.get_logger(__name__)


class Connections(Protocol):
    """A source of connections in autocommit mode."""

    def connection(self) -> AbstractAsyncContextManager[Connection]: ...

    async def recover(self) -> None:
        """Called after a connection was lost and before the work is tried again."""
        ...


class _HostileInstant:
    """An instant that Python cannot hold is read as LATEST, so that one bad row does not poison the rows beside it."""

    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)  # type: ignore[misc]
        except psycopg.DataError:
            return LATEST


class _TolerantTextLoader(_HostileInstant, TimestamptzLoader):
    pass


class _TolerantBinaryLoader(_HostileInstant, TimestamptzBinaryLoader):
    pass


def _configure(connection: Connection) -> None:
    connection.adapters.register_loader("timestamptz", _TolerantTextLoader)
    connection.adapters.register_loader("timestamptz", _TolerantBinaryLoader)


def cut(connection: Connection) -> None:
    """Shut the connection's socket down, so that whoever waits on it fails now.

    Not psycopg's cancel: that opens a second connection to the same frozen server and waits up to five seconds for it.
    """
    with contextlib.suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        try:
            duplicate.shutdown(socket.SHUT_RDWR)
        finally:
            duplicate.close()


@asynccontextmanager
async def limited(connection: Connection, seconds: float | None) -> AsyncIterator[None]:
    """Cut the connection if the block takes longer than `seconds`; the block then fails with an OperationalError."""
    if seconds is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(seconds, cut, connection)
    try:
        yield
    finally:
        timer.cancel()


class Link:
    """One connection, used by one caller at a time, opened on demand and thrown away when it breaks.

    `generation` counts the backends it has had: a change of it tells a caller that what it watched was disturbed.
    """

    def __init__(self, url: str, *, application_name: str, seconds: float | None = None) -> None:
        """`seconds`: client-side limit on one use, connecting included."""
        self._url = url
        self._application_name = application_name
        self._seconds = seconds
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self.generation = 0

    async def _open(self) -> Connection:
        if self._connection is not None and not self._connection.broken and not self._connection.closed:
            return self._connection
        await self._discard()
        connection = await psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,
            connect_timeout=int(CONNECT_SECONDS),
            application_name=self._application_name,
            options=PINNED_PLANS,
        )
        _configure(connection)
        connection.prepare_threshold = 0
        self._connection = connection
        self.generation += 1
        return connection

    async def _discard(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                await connection.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with self._lock:
            try:
                async with asyncio.timeout(self._seconds):
                    connection = await self._open()
            except TimeoutError as error:
                raise psycopg.OperationalError(f"no connection within {self._seconds} s") from error
            try:
                async with limited(connection, self._seconds):
                    yield connection
            except BaseException:
                # A statement cut short leaves the protocol at an unknown place: never use this connection again.
                if connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    cut(connection)
                    await self._discard()
                raise

    async def recover(self) -> None:
        async with self._lock:
            await self._discard()

    async def close(self) -> None:
        """Close the connection; a later use opens a new one."""
        async with self._lock:
            await self._discard()


class Pool:
    """A psycopg pool that comes back within a second of the database.

    psycopg_pool's own back-off after an outage doubles to tens of seconds, and its `check=` makes a serial caller wait
    30 s; so: no check on the way out, `check()` after a lost connection, and a new pool where the server answers a
    plain connect while the pool stays empty.
    """

    def __init__(
        self,
        url: str,
        *,
        application_name: str,
        max_size: int,
        seconds: float | None = None,
        options: str | None = None,
    ) -> None:
        """`max_size` connections at most. `seconds`: client-side limit on one use. `options`: `-c name=value …`."""
        self._url = url
        self._application_name = application_name
        self._max_size = max_size
        self._seconds = seconds
        self._options: dict[str, str] = {} if options is None else {"options": options}
        self._pool: psycopg_pool.AsyncConnectionPool[Connection] | None = None
        self._recovering = asyncio.Lock()
        self._in_use = 0

    async def _make(self) -> psycopg_pool.AsyncConnectionPool[Connection]:
        async def configure(connection: Connection) -> None:
            _configure(connection)

        pool = psycopg_pool.AsyncConnectionPool(
            self._url,
            min_size=1,
            max_size=self._max_size,
            timeout=CONNECT_SECONDS,
            reconnect_timeout=CONNECT_SECONDS,
            open=False,
            configure=configure,
            kwargs={
                "autocommit": True,
                "application_name": self._application_name,
                "connect_timeout": int(CONNECT_SECONDS),
                **self._options,
            },
        )
        await pool.open(wait=False)
        return pool

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        pool, connection = await self._take()
        self._in_use += 1
        try:
            async with connection, limited(connection, self._seconds):
                yield connection
        finally:
            self._in_use -= 1
            await pool.putconn(connection)

    async def _take(self) -> tuple[psycopg_pool.AsyncConnectionPool[Connection], Connection]:
        """A connection and the pool to give it back to."""
        while True:
            if self._pool is None:
                async with self._recovering:
                    if self._pool is None:
                        self._pool = await self._make()
            pool = self._pool
            try:
                return pool, await pool.getconn()
            except psycopg_pool.PoolClosed as error:
                if pool is self._pool:
                    raise psycopg.OperationalError(str(error)) from error
                # else it was replaced while this caller stood in its queue
            except psycopg_pool.PoolTimeout as error:
                raise psycopg.OperationalError(str(error)) from error

    async def recover(self) -> None:
        if self._recovering.locked():  # somebody is at it; the work itself will wait for a connection
            return
        async with self._recovering:
            probe = await psycopg.AsyncConnection.connect(self._url, connect_timeout=int(CONNECT_SECONDS))
            await probe.close()
            if self._in_use > 0 and self._pool is not None:
                await self._pool.check()  # others are served, or stand in their turn: the pool is not stuck
                return
            old, self._pool = self._pool, await self._make()
            if old is not None:
                await old.close(timeout=0)

    async def close(self) -> None:
        """Close every connection."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close(timeout=1)


_CONNECTION_STATES: Final = frozenset({"57P01", "57P02", "57P03", "25006"})


def is_connection_loss(error: BaseException) -> bool:
    """Whether an error means that the connection or the server is gone, or is a read-only one, not that a statement
    was wrong."""
    if isinstance(error, psycopg.InterfaceError):
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.errors.ReadOnlySqlTransaction):
        return False
    state = error.sqlstate
    return state is None or state in _CONNECTION_STATES or state[:2] in {"08", "53"}


async def transact(
    connections: Connections,
    work: Callable[[Connection], Awaitable[T]],
    *,
    repeatable: bool,
    give_up_after: float,
    clock: Clock,
) -> T:
    """Run `work` on a connection, trying again as the table above says.

    `repeatable`: the work may be done again although its first commit may have landed; it is at least once, and until
    `give_up_after` seconds have passed. Then, or at the first loss where it is not repeatable: StoreUnavailable.
    """
    started = clock.elapsed()
    conflicts = losses = 0
    while True:
        try:
            async with connections.connection() as connection:
                return await work(connection)
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected) as error:
            conflicts += 1
            metrics.STORE_RETRIES.labels(error.sqlstate).inc()
            if conflicts >= ATTEMPTS:
                raise
            await asyncio.sleep(random.uniform(0, 0.01 * 2**conflicts))
        except (psycopg.Error, OSError) as error:
            if isinstance(error, psycopg.Error) and not is_connection_loss(error):
                raise
            metrics.STORE_RETRIES.labels("connection").inc()
            losses += 1
            if not repeatable or (losses > 1 and clock.elapsed() - started > give_up_after):
                raise StoreUnavailable(f"the database cannot be reached: {_first_line(error)}") from error
            await asyncio.sleep(random.uniform(0.02, 0.2))
            with contextlib.suppress(psycopg.Error, OSError):
                await connections.recover()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
