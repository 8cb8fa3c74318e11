"""schema.sql is what the migrations make, on every supported PostgreSQL."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import psycopg
import pytest

from ringcron_sql.migrate import migrate

SCHEMA = Path(str(resources.files("ringcron_sql"))) / "schema.sql"
DUMP = Path(__file__).parents[1] / "support" / "schema_dump.sql"
REFRESH = "RINGCRON_REFRESH_SCHEMA=1 .venv/bin/pytest tests/integration/test_schema_drift.py"
HEADER = f"""\
-- The schema at the newest migration, for reading; the migrations make it, this file never runs.
-- Do not edit. Written by: {REFRESH}
-- Only the first and the last partition of each table are here: upkeep makes the days between them.
"""


def dump(url: str) -> str:
    with psycopg.connect(url, options="-c timezone=UTC -c datestyle=ISO") as connection:
        tables = connection.execute(DUMP.read_bytes()).fetchall()
    return "\n".join([HEADER, *(table for (table,) in tables)])


@pytest.mark.store
async def test_schema_sql_is_what_the_migrations_make(empty_database_url: str) -> None:
    await migrate(empty_database_url)
    made = dump(empty_database_url)
    if os.environ.get("RINGCRON_REFRESH_SCHEMA"):
        SCHEMA.write_text(made, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == made, f"schema.sql is out of date. Write it again with:\n    {REFRESH}"
