"""Connections, and the one retry wrapper.

Two sources of connections, one interface (`Connections`):

- `pool.Pool` (API, coordinator): a psycopg pool that recovers at once after a restart of the database;
- `link.Link` (worker): one connection of its own, opened on demand, with a client-side limit on each use.

What is tried again, and why that is safe:

    40001, 40P01          the transaction was rolled back: again, with jitter, at most ATTEMPTS times
    connection lost       nothing is known of the commit: again only where the caller says that its work is repeatable
                          (reads; writes with a fixed id; fenced writes, whose second try finds the first one's effect)
    57P01 and kin         the server is going away: as a lost connection
    25006                 the server only reads, as one that was demoted: as a lost connection, and the session is left
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
from psycopg.adapt import Buffer, Transformer
from psycopg.types.datetime import TimestamptzBinaryLoader, TimestamptzLoader

from ringcron import metrics
from ringcron.clock import Clock
from ringcron.errors import StoreUnavailable
from ringcron.models import LATEST

T = TypeVar("T")
Connection = psycopg.AsyncConnection[tuple[Any, ...]]

ATTEMPTS: Final = 5
CONNECT_SECONDS: Final = 5.0


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


def configure(connection: Connection) -> None:
    connection.adapters.register_loader("timestamptz", _TolerantTextLoader)
    connection.adapters.register_loader("timestamptz", _TolerantBinaryLoader)


async def rows_of(cursor: psycopg.AsyncCursor[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of a binary result. Quick where every instant in it is one that Python can hold, tolerant where not."""
    if cursor.description is None:
        return []
    try:
        return await cursor.fetchall()
    except psycopg.DataError:
        assert cursor.pgresult is not None
        cursor.adapters.register_loader("timestamptz", _TolerantBinaryLoader)
        transformer = Transformer(cursor)
        transformer.set_pgresult(cursor.pgresult)
        return transformer.load_rows(0, cursor.pgresult.ntuples, tuple)


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
            metrics.STORE_RETRIES[error.sqlstate or "none"].inc()
            if conflicts >= ATTEMPTS:
                raise
            await asyncio.sleep(random.uniform(0, 0.01 * 2**conflicts))
        except (psycopg.Error, OSError) as error:
            if isinstance(error, psycopg.Error) and not is_connection_loss(error):
                raise
            metrics.STORE_RETRIES["connection"].inc()
            losses += 1
            if not repeatable or (losses > 1 and clock.elapsed() - started > give_up_after):
                if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):  # such a session does not end by itself
                    with contextlib.suppress(psycopg.Error, OSError):
                        await connections.recover()
                raise StoreUnavailable(f"the database cannot be reached: {_first_line(error)}") from error
            await asyncio.sleep(random.uniform(0.02, 0.2))
            with contextlib.suppress(psycopg.Error, OSError):
                await connections.recover()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
