"""Errors of PostgreSQL tell no values, whoever logs them and however."""

from __future__ import annotations

import traceback

import psycopg
import pytest

from ringcron.store.opening import OpenedConnection

pytestmark = pytest.mark.store

FAULTS = {
    "check": ("insert into t values (1, %s, 's3cret')", "violates check constraint", "constraint t_a_check"),
    "null": ("insert into t values (null, null, %s)", "violates not-null constraint", "column id"),
    "unique": ("insert into t values (2, null, %s), (3, null, %s)", "violates unique constraint", "constraint t_b_key"),
    "json": ("select ('{s3cret' || %s)::json", "invalid input syntax for type json", "SQLSTATE 22P02"),
    "number": ("select ('a \"b\" ' || %s)::int", "invalid input syntax for type integer: …", "SQLSTATE 22P02"),
    "raised": ("do $$ begin raise 'no' using detail = 's3cret', hint = 's3cret'; end $$", "no", "SQLSTATE P0001"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_text_of_an_error_holds_no_values(database_url: str, fault: str) -> None:
    statement, message, about = FAULTS[fault]
    async with await OpenedConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("create temp table t (id int not null, a text check (a = 'x'), b text unique)")
        with pytest.raises(psycopg.Error) as raised:
            await connection.execute(statement.encode(), ["s3cret"] * statement.count("%s") or None)
    told = "".join(traceback.format_exception(raised.value)[-1:])
    assert "s3cret" not in told
    assert message in told
    assert about in told


async def test_nor_does_that_of_a_copy(database_url: str) -> None:
    async with await OpenedConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("create temp table t (id int, a text check (a = 'x'))")
        with pytest.raises(psycopg.errors.CheckViolation) as raised:
            async with connection.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
                await copy.write_row((1, "s3cret"))
    assert str(raised.value).endswith("(SQLSTATE 23514, table t, constraint t_a_check)")
