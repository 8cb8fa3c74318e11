"""What stands in for psycopg's connection: a statement goes over our network and may be lost on either way.

Invariants: a statement that arrived is carried out whole, also when its answer is lost or its client is gone; one that
was sent to a frozen server waits there and may be carried out after its client has given up; of a lost connection the
client learns nothing but that.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import psycopg

from tests.simulation.event_loop import this_process
from tests.simulation.process import Process


class _Adapters:
    def register_loader(self, name: str, loader: type) -> None:
        """Our instants come as Python has them."""


class Cursor:
    """The answer of a statement."""

    description = ()

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    async def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


class Connection:
    """psycopg's AsyncConnection, as far as ringcron.store.link uses it."""

    adapters = _Adapters()

    def __init__(self, process: Process) -> None:
        self.broken = False
        self.closed = False
        self.prepare_threshold: int | None = None
        self.process = process
        self.pgconn = SimpleNamespace(transaction_status=psycopg.pq.TransactionStatus.IDLE)
        self._world: Any = process.world
        self._waiting: asyncio.Future[Any] | None = None

    @classmethod
    async def connect(cls, url: str, **_: Any) -> Connection:
        connection = cls(this_process())
        opened = asyncio.get_running_loop().create_future()
        connection._world.connect(connection, _Settle(opened))
        await opened
        return connection

    async def execute(self, statement: str, parameters: Any = None, *, binary: bool = False) -> Cursor:
        if self.broken or self.closed:
            raise psycopg.OperationalError("the connection is closed")
        self._waiting = asyncio.get_running_loop().create_future()
        self._world.send(self, statement, parameters, _Settle(self._waiting))
        return Cursor(await self._waiting)

    def cut(self) -> None:
        """Ours or the server's end was closed: what waits for an answer gets none."""
        self.broken = self.closed = True
        self.pgconn.transaction_status = psycopg.pq.TransactionStatus.UNKNOWN
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(psycopg.OperationalError("server closed the connection unexpectedly"))

    async def close(self) -> None:
        self.closed = True


class _Settle:
    """Ends a wait, once."""

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self._future = future

    def answer(self, value: Any) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def fail(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)
