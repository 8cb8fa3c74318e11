"""One connection of its own: what a worker has two of."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import psycopg

from ringcron.store.connection import CONNECT_SECONDS, Connection, cut, limited
from ringcron.store.opening import OpenedConnection
from ringcron_sql import query

PLANS: Final[Mapping[str, str]] = {
    "plan_cache_mode": "force_generic_plan",  # what prunes partitions stands in the text (ringcron.store.pinned)
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
"""Each of a worker's statements has one right plan: nested loops over index scans. No statistics may choose another.

What writes to jobs says `j.id between held.id and held.id`, and its bounds with an `or`: all of it means what `=` and
`and` would, but it can only be read as a look-up of one id after another. A plan that was made when a day held next to
nothing (they are kept) else reads the whole index of the day once per row, when thousands of jobs have come.
"""
PINNED_PLANS: Final = " ".join(f"-c {name}={value}" for name, value in PLANS.items())
"""The same as startup options."""


class Link:
    """One connection, used by one caller at a time, opened on demand and thrown away when it breaks.

    `generation` counts the backends it has had: a change of it tells a caller that what it watched was disturbed.
    With `on_bell` it listens for the bell (ringcron.store.bell) whenever nobody uses it; a bell that rings while it is
    away is lost, which costs a poll. `behind_pooler`: nothing is set or prepared in the session, and no bell is heard
    (ringcron.store.pooled).
    """

    def __init__(
        self,
        url: str,
        *,
        application_name: str,
        seconds: float | None = None,
        on_bell: Callable[[str], object] | None = None,
        behind_pooler: bool = False,
    ) -> None:
        """`seconds`: client-side limit on one use, connecting included."""
        self._url = url
        self._application_name = application_name
        self._seconds = seconds
        self._on_bell = None if behind_pooler else on_bell
        self._session = {} if behind_pooler else {"options": PINNED_PLANS}
        self._prepare_threshold = None if behind_pooler else 0
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self.generation = 0

    @property
    def up(self) -> bool:
        """Whether it is connected, as far as is known."""
        return self._connection is not None and not self._connection.closed

    @property
    def listens(self) -> bool:
        """Whether it hears the bell, as far as is known."""
        return self._on_bell is not None and self.up

    async def _open(self) -> Connection:
        if self._connection is not None and not self._connection.broken and not self._connection.closed:
            return self._connection
        await self._discard()
        connection = await OpenedConnection.connect(
            self._url,
            autocommit=True,
            connect_timeout=int(CONNECT_SECONDS),
            application_name=self._application_name,
            **self._session,
        )
        connection.prepare_threshold = self._prepare_threshold
        if self._on_bell is not None:
            connection.add_notify_handler(self._heard_in_statement)
            await connection.execute(query("listen_bell"))
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
            self._stop_listening()
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
            finally:
                self._listen()

    def _listen(self) -> None:
        """Watch the socket while nobody uses the connection; psycopg watches it itself during a statement."""
        connection = self._connection
        if self._on_bell is not None and connection is not None and not connection.closed:
            asyncio.get_running_loop().add_reader(connection.fileno(), self._heard, connection)

    def _stop_listening(self) -> None:
        connection = self._connection
        if self._on_bell is not None and connection is not None and not connection.closed:
            asyncio.get_running_loop().remove_reader(connection.fileno())

    def _heard_in_statement(self, notify: psycopg.Notify) -> None:
        assert self._on_bell is not None
        self._on_bell(notify.payload)

    def _heard(self, connection: Connection) -> None:
        try:
            connection.pgconn.consume_input()
            while notify := connection.pgconn.notifies():
                assert self._on_bell is not None
                self._on_bell(notify.extra.decode())
        except psycopg.Error:
            # The server is gone: another connection is opened by the next use.
            asyncio.get_running_loop().remove_reader(connection.fileno())
            cut(connection)

    async def recover(self) -> None:
        async with self._lock:
            self._stop_listening()
            await self._discard()

    async def close(self) -> None:
        """Close the connection; a later use opens a new one."""
        await self.recover()
