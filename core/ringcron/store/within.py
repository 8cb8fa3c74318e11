"""One transaction as a source of connections, so that what the store does by itself can be done within it.

Invariant: each use is a savepoint: a conflict (40001, 40P01) undoes that use alone and may be tried again. A lost
connection ends everything: no use after it reaches the database, and `lost` says why, for whoever runs the whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from ringcron.errors import StoreUnavailable
from ringcron.store.connection import Connection, is_connection_loss


class OneTransaction:
    """Connections that are all the one on which a transaction is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.lost: psycopg.Error | OSError | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        if self.lost is not None:
            raise StoreUnavailable("the connection of this transaction was lost")
        try:
            async with self._connection.transaction():
                yield self._connection
        except (psycopg.Error, OSError) as error:
            if isinstance(error, OSError) or is_connection_loss(error):
                self.lost = error
            raise

    async def recover(self) -> None:
        """Nothing can: see `lost`."""
