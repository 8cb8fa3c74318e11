"""Bring a database to the schema that this code needs.

Invariant: a migration is applied once, whole, in the order of its number, and never changes afterwards: its checksum is
recorded in `schema_migrations`, in the same transaction. The database is authoritative for what was applied, the files
for what is to be. There is no way back: an older program refuses a newer database.

One advisory lock, held by the transaction of each migration, lets several migrators start at once: one goes on, the
others wait, then find nothing to do. It works behind a transaction pooler. A migration that cannot get its table locks
within a second steps back, so that no traffic queues behind it, and tries again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any, Final, LiteralString

import psycopg

from ringcron_sql import query

Connection = psycopg.AsyncConnection[Any]

OLDEST_SERVER: Final = 150000
"""The oldest server that is supported, as the server numbers itself: PostgreSQL 15."""
CONNECT_SECONDS: Final = 10
WAIT_FOR_MIGRATOR_MILLISECONDS: Final = 60_000
WAIT_FOR_TABLES_MILLISECONDS: Final = 1_000
TRIES: Final = 60
"""How often a migration tries to get its table locks, with up to a second in between."""


class MigrationError(Exception):
    """The database cannot be brought to the schema that this code needs; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """One file of migrations/: NNNN_name.sql."""

    version: int
    name: str
    text: LiteralString

    @property
    def checksum(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        return sha256(self.text.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration of this code in order: 1, 2, …"""
    folder = resources.files(__package__).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    found = tuple(
        Migration(version=int(name[:4]), name=name[5:-4], text=folder.joinpath(name).read_text(encoding="utf-8"))
        for name in names
    )
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise MigrationError(f"migrations are not numbered 1, 2, …: {', '.join(names)}")
    return found


def required_version() -> int:
    """The schema version that this code needs."""
    return migrations()[-1].version


async def schema_version(connection: Connection) -> int:
    """The schema version of a database; 0 if it was never migrated."""
    applied = await _applied(connection)
    return applied[-1][0] if applied else 0


async def migrate(url: str) -> list[str]:
    """Apply what is missing, and say what was done, one sentence each.

    Raises MigrationError if the server is too old, the database is newer than this code, a migration was changed after
    it was applied, or the locks cannot be had; psycopg.Error if the server cannot be reached or refuses a statement.
    """
    connection = await psycopg.AsyncConnection.connect(
        url,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        prepare_threshold=None,  # a name that was prepared is another session's, or nobody's, behind a pooler
    )
    async with connection:
        if connection.info.server_version < OLDEST_SERVER:
            raise MigrationError(
                f"the server is PostgreSQL {connection.info.server_version // 10000}; ringcron needs 15 or newer"
            )
        done: list[str] = []
        while (migration := await _apply_next(connection)) is not None:
            done.append(f"applied migration {migration.version:04} {migration.name}")
        return done or [f"the schema is at version {required_version()}: nothing to do"]


def pending(applied: Sequence[tuple[int, str, str]], files: Sequence[Migration]) -> Sequence[Migration]:
    """The files that are still to be applied. `applied`: (version, name, checksum) in order.

    Raises MigrationError if what was applied is not the beginning of `files`.
    """
    if len(applied) > len(files):
        raise MigrationError(
            f"the database is at schema version {applied[-1][0]}, this program knows {len(files)}: "
            "it was migrated by a newer ringcron; run that version"
        )
    for (version, name, checksum), migration in zip(applied, files, strict=False):
        if version != migration.version:
            raise MigrationError(f"migration {migration.version:04} is missing in schema_migrations")
        if checksum != migration.checksum:
            raise MigrationError(
                f"migration {version:04} {name} was applied with other contents than this program's "
                f"{migration.version:04}_{migration.name}.sql: an applied migration must never be changed; "
                "add a new one, or install the ringcron that made this database"
            )
    return files[len(applied) :]


async def _apply_next(connection: Connection) -> Migration | None:
    """Apply the first pending migration in a transaction of its own; None if there is none."""
    for _ in range(TRIES):
        try:
            async with connection.transaction():
                await _limit(connection, WAIT_FOR_MIGRATOR_MILLISECONDS)
                await connection.execute(query("lock_migrations"))
                waiting = pending(await _applied(connection), migrations())
                if not waiting:
                    return None
                await _limit(connection, WAIT_FOR_TABLES_MILLISECONDS)
                await connection.execute(query("create_schema_migrations"))
                await connection.execute(waiting[0].text, prepare=False)
                await connection.execute(
                    query("record_migration"),
                    {"version": waiting[0].version, "name": waiting[0].name, "checksum": waiting[0].checksum},
                )
                return waiting[0]
        except psycopg.errors.LockNotAvailable:
            await asyncio.sleep(random.uniform(0.1, 1))
    raise MigrationError(f"a migration could not get its locks in {TRIES} tries: something holds a transaction open")


async def _applied(connection: Connection) -> list[tuple[int, str, str]]:
    cursor = await connection.execute(query("find_schema_migrations"))
    if await cursor.fetchone() != (True,):
        return []
    cursor = await connection.execute(query("list_schema_migrations"))
    return await cursor.fetchall()


async def _limit(connection: Connection, lock_milliseconds: int) -> None:
    await connection.execute(query("limit_transaction"), {"lock_milliseconds": lock_milliseconds})
