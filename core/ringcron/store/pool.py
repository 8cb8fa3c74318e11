"""A pool of connections: what the API and the coordinator have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import psycopg
import psycopg_pool

from ringcron.store.connection import CONNECT_SECONDS, Connection, limited
from ringcron.store.connection import configure as configure_connection
from ringcron.store.opening import OpenedConnection


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
        behind_pooler: bool = False,
    ) -> None:
        """`max_size` connections at most. `seconds`: client-side limit on one use. `options`: `-c name=value …`, which
        are left out `behind_pooler`, where nothing is prepared either (ringcron.store.pooled)."""
        self._url = url
        self._application_name = application_name
        self._max_size = max_size
        self._seconds = seconds
        self._session: dict[str, Any] = {} if options is None else {"options": options}
        if behind_pooler:
            self._session = {"prepare_threshold": None}
        self._pool: psycopg_pool.AsyncConnectionPool[Connection] | None = None
        self._recovering = asyncio.Lock()
        self._in_use = 0
        self._closed = False

    async def _make(self) -> psycopg_pool.AsyncConnectionPool[Connection]:
        if self._closed:  # work that is being cancelled must not open what nobody would close
            raise psycopg.OperationalError("the pool is closed")

        async def configure(connection: Connection) -> None:
            configure_connection(connection)

        pool: psycopg_pool.AsyncConnectionPool[Connection] = psycopg_pool.AsyncConnectionPool(
            self._url,
            connection_class=OpenedConnection,
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
                **self._session,
            },
        )
        await pool.open(wait=False)
        return pool

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        return self.connection_for(self._seconds)

    @asynccontextmanager
    async def connection_for(self, seconds: float | None) -> AsyncIterator[Connection]:
        """The same, with another limit on this use."""
        pool, connection = await self._take()
        self._in_use += 1
        try:
            async with connection, limited(connection, seconds):
                yield connection
        finally:
            self._in_use -= 1
            await pool.putconn(connection)

    def patient(self, seconds: float) -> Patient:
        """The same connections, each use of which may take up to `seconds`."""
        return Patient(self, seconds)

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
            probe = await OpenedConnection.connect(self._url, connect_timeout=int(CONNECT_SECONDS))
            await probe.close()
            if self._in_use > 0 and self._pool is not None:
                await self._pool.check()  # others are served, or stand in their turn: the pool is not stuck
                return
            old, self._pool = self._pool, await self._make()
            if old is not None:
                await old.close(timeout=0)

    async def close(self) -> None:
        """Close every connection, for good: a later use fails as if the database were away."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close(timeout=1)


class Patient:
    """The connections of a pool for work that takes longer than the rest."""

    def __init__(self, pool: Pool, seconds: float) -> None:
        self._pool = pool
        self._seconds = seconds

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        return self._pool.connection_for(self._seconds)

    async def recover(self) -> None:
        await self._pool.recover()
