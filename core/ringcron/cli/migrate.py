"""`ringcron migrate`: bring the database to the schema of this version. Safe to run at any time and many at once."""

from __future__ import annotations

import asyncio

import typer

from ringcron import service
from ringcron.redaction import redact
from ringcron.settings import DatabaseSettings
from ringcron_sql.migrate import migrate


def migrate_database(settings: DatabaseSettings) -> int:
    """Apply what is missing and say what was done. The exit code of the process."""
    try:
        sentences = asyncio.run(migrate(settings.database_url))
    except Exception as error:  # psycopg's errors, which only the store knows by name, are told like any other
        typer.echo(f"ringcron: the database cannot be migrated: {redact(str(error)).strip()}", err=True)
        return service.FAULT
    for sentence in sentences:
        typer.echo(sentence)
    return service.OK
