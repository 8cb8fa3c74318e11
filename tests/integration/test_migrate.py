"""Migrations: once, in order, under a lock, and a clear word where that cannot be."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from ringcron_sql import migrate as module
from ringcron_sql.migrate import Migration, MigrationError, migrate, migrations, required_version, schema_version
from tests.support.waiting import until


async def execute(url: str, statement: bytes) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(statement)


async def version_of(url: str) -> int:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        return await schema_version(connection)


@pytest.mark.store
async def test_migrating_twice_applies_each_migration_once(empty_database_url: str) -> None:
    assert await version_of(empty_database_url) == 0
    first = await migrate(empty_database_url)
    assert first == [f"applied migration {m.version:04} {m.name}" for m in migrations()]
    assert await version_of(empty_database_url) == required_version()
    assert await migrate(empty_database_url) == [f"the schema is at version {required_version()}: nothing to do"]


@pytest.mark.store
async def test_several_migrators_at_once_apply_each_migration_once(empty_database_url: str) -> None:
    done = await asyncio.gather(*(migrate(empty_database_url) for _ in range(4)))
    applied = sorted(sentence for sentences in done for sentence in sentences if sentence.startswith("applied"))
    assert applied == [f"applied migration {m.version:04} {m.name}" for m in migrations()]


async def test_a_second_migrator_waits_for_the_first(empty_database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database_url, autocommit=True) as other:
        async with other.transaction():
            await other.execute(b"select pg_advisory_xact_lock(1919512167, 1)")
            second = asyncio.create_task(migrate(empty_database_url))
            await until(lambda: _somebody_waits(other))
            assert not second.done()
        assert len(await second) == len(migrations())


async def _somebody_waits(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> bool:
    cursor = await connection.execute(
        b"select 1 from pg_locks where locktype = 'advisory' and not granted and objid = 1 "
        b"and database = (select oid from pg_database where datname = current_database())"
    )
    return await cursor.fetchone() is not None


async def test_a_changed_migration_is_refused(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    await execute(empty_database_url, b"update schema_migrations set checksum = 'f00' where version = 1")
    with pytest.raises(MigrationError, match="0001 jobs_and_runs was applied with other contents"):
        await migrate(empty_database_url)


async def test_a_newer_database_is_refused(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    await execute(empty_database_url, b"insert into schema_migrations values (9999, 'later', 'f00')")
    with pytest.raises(MigrationError, match="migrated by a newer ringcron"):
        await migrate(empty_database_url)


async def test_a_hole_in_what_was_applied_is_refused(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    await execute(empty_database_url, b"update schema_migrations set version = -version")
    with pytest.raises(MigrationError, match="0001 is missing"):
        await migrate(empty_database_url)


@pytest.mark.store
async def test_a_migration_that_fails_leaves_nothing_behind(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Migration(version=1, name="broken", text="create table half (id int); select 1 / 0")
    monkeypatch.setattr(module, "migrations", lambda: (broken,))
    with pytest.raises(psycopg.errors.DivisionByZero):
        await migrate(empty_database_url)
    assert await version_of(empty_database_url) == 0
    async with await psycopg.AsyncConnection.connect(empty_database_url) as connection:
        cursor = await connection.execute(b"select to_regclass('half'), to_regclass('schema_migrations')")
        assert await cursor.fetchone() == (None, None)


async def test_a_migration_steps_back_from_traffic_and_tries_again(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database_url = empty_database_url
    await migrate(database_url)
    later = Migration(version=required_version() + 1, name="later", text="alter table jobs add column later int")
    files = (*migrations(), later)
    monkeypatch.setattr(module, "migrations", lambda: files)
    monkeypatch.setattr(module, "WAIT_FOR_TABLES_MILLISECONDS", 50)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as traffic:
        async with traffic.transaction():
            await traffic.execute(b"select count(*) from jobs")
            monkeypatch.setattr(module, "TRIES", 2)
            with pytest.raises(MigrationError, match="could not get its locks in 2 tries"):
                await migrate(database_url)
        monkeypatch.setattr(module, "TRIES", 60)
        assert await migrate(database_url) == [f"applied migration {later.version:04} later"]


async def test_an_old_server_is_refused(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OLDEST_SERVER", 990000)
    with pytest.raises(MigrationError, match="ringcron needs 15 or newer"):
        await migrate(empty_database_url)


@pytest.mark.store
async def test_the_first_days_begin_at_utc_midnight_whatever_the_zone_of_the_server(empty_database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database_url, autocommit=True) as connection:
        name = connection.info.dbname
        await connection.execute(f"alter database \"{name}\" set timezone = 'Asia/Kolkata'".encode())
        await connection.execute(f"alter database \"{name}\" set datestyle = 'SQL, DMY'".encode())
    await migrate(empty_database_url)
    async with await psycopg.AsyncConnection.connect(empty_database_url, options="-c timezone=UTC") as connection:
        cursor = await connection.execute(
            b"select count(*) from pg_class c where relispartition and relkind = 'r' "
            b"and pg_get_expr(relpartbound, oid) like '%% 00:00:00 UTC%%'"
        )
        assert await cursor.fetchone() == (6,)
