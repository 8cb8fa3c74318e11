"""API keys in PostgreSQL: added and revoked by a person, read and touched by the API.

Invariant: a key is live from its insert until `revoked_at` is set; it never becomes live again, and its row stays, so
that records which name it can be explained. Each call may be tried again: an add has its id and secret fixed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import psycopg

from ringcron.api_keys import ApiKey, KeyText, Scope
from ringcron.clock import Clock
from ringcron.errors import ApiKeyNameTaken, ApiKeyNotFound, StoreUnavailable
from ringcron.store.connection import Connection, Connections, transact
from ringcron_sql import query

T = TypeVar("T")


class KeyStore:
    """The statements about API keys."""

    def __init__(self, connections: Connections, *, clock: Clock) -> None:
        self._connections = connections
        self._clock = clock

    async def list_keys(self, *, live_only: bool) -> list[ApiKey]:
        """The keys that are not revoked, or all; the oldest first. Raises StoreUnavailable, as the others do."""
        rows = await self._rows("list_api_keys", live_only=live_only)
        return [_key_from_row(row) for row in rows]

    async def add_key(
        self, key: KeyText, *, name: str, scope: Scope, rate_per_second: float | None, burst: int | None
    ) -> None:
        """Raises ApiKeyNameTaken where a live key has the name."""
        rows = await self._rows(
            "insert_api_key",
            id=key.id,
            name=name,
            secret_hash=key.secret_hash(),
            scope=scope.value,
            rate_per_second=rate_per_second,
            burst=burst,
        )
        if not rows:
            raise ApiKeyNameTaken(f"a live key has the name {name!r} already: choose another, or revoke that one")

    async def revoke_key(self, key_id: str) -> tuple[str, datetime]:
        """Its name and when it was revoked, now or before. Raises ApiKeyNotFound."""
        rows = await self._rows("revoke_api_key", id=key_id)
        if not rows:
            raise ApiKeyNotFound(f"no key has the id {key_id[:40]!r}; `ringcron key list` shows every one")
        name, revoked_at = rows[0]
        return name, revoked_at

    async def touch_key(self, key_id: str) -> None:
        """Note that it was used, unless that was noted within the last minute."""

        async def work(connection: Connection) -> None:
            await connection.execute(query("touch_api_key"), {"id": key_id})

        await self._run(work)

    async def _rows(self, statement: str, /, **parameters: object) -> Sequence[tuple[Any, ...]]:
        async def work(connection: Connection) -> Sequence[tuple[Any, ...]]:
            cursor = await connection.execute(query(statement), parameters)
            return await cursor.fetchall()

        return await self._run(work)

    async def _run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        try:
            return await transact(self._connections, work, repeatable=True, give_up_after=0.0, clock=self._clock)
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"the database did not finish in time: SQLSTATE {error.sqlstate}") from error
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            raise StoreUnavailable("the database has no schema that this version knows: migrate it") from error


def _key_from_row(row: tuple[Any, ...]) -> ApiKey:
    key_id, name, secret_hash, scope, rate_per_second, burst, created_at, last_used_at, revoked_at = row
    return ApiKey(
        id=key_id,
        name=name,
        secret_hash=bytes(secret_hash),
        scope=Scope(scope),
        rate_per_second=rate_per_second,
        burst=burst,
        created_at=created_at,
        last_used_at=last_used_at,
        revoked_at=revoked_at,
    )
