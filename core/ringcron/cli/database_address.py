"""Where the database is, for a command that a person types.

Invariant: a flag wins over the variables, those over the `ringcron up` that runs in this folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ringcron.cli.up_file import UP_FILE, address_in
from ringcron.errors import ConfigError
from ringcron.settings import DatabaseSettings

_VARIABLES: Final = ("RINGCRON_DATABASE_URL", "DATABASE_URL")
_NOT_SET: Final = (
    "RINGCRON_DATABASE_URL is not set: PostgreSQL, as postgresql://user:password@host:5432/database. No `ringcron up` "
    "with the default data folder runs here; the address of one elsewhere is databaseUrl in <data-dir>/up.json"
)


def database_settings(
    environment: Mapping[str, str], database_url: str | None, up_file: Path = UP_FILE
) -> DatabaseSettings:
    """`database_url` is a flag. Raises ConfigError, which says where the address of a `ringcron up` stands."""
    if database_url is None and not any(
        environment.get(f"{variable}{end}") for variable in _VARIABLES for end in ("", "_FILE")
    ):
        database_url = address_in(up_file, "databaseUrl")
        if database_url is None:
            raise ConfigError([_NOT_SET])
    return DatabaseSettings.load(environment, database_url=database_url)
