"""The client that commands call the API with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from ringcron.cli.api_address import key_of, url_of
from ringcron.client import Client

PATIENCE: Final = timedelta(seconds=15)
TRIES: Final = 3
"""Somebody waits at a terminal: a refused connection is told within a second."""


def connect(
    url: str | None,
    api_key: str | None,
    environment: Mapping[str, str],
    *,
    patience: timedelta = PATIENCE,
    tries: int = TRIES,
) -> Client:
    """`url` and `api_key` are flags; where they were not given, environment and folder say. Raises ConfigError."""
    return Client(url or url_of(environment), api_key or key_of(environment), timeout=patience, tries=tries)
