"""Statements with the bounds that prune partitions written into their text.

Invariant: the statement says the same as with the bounds as parameters. Why: PostgreSQL plans a statement with
parameters either anew each time, 1 to 20 ms for the partitions of a month, or once without knowing them, and then for
every partition. With the bounds in its text it is planned once, for the few partitions within. Bounds are of the grain
of an hour or a day, so there are few texts; a connection keeps each of them prepared.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, LiteralString

from ringcron_sql import query

PINNED: Final = ("from_at", "until_at", "arcs_from_at", "arcs_until_at", "first_at", "last_at", "solo")
"""The parameters that are written into the text: instants that bound next_run_at, and which index a claim is to use."""


def pinned(name: str, parameters: Mapping[str, Any]) -> LiteralString:
    """The text of a statement with those of PINNED that `parameters` has."""
    return _pinned(name, tuple((key, parameters[key]) for key in PINNED if key in parameters))


@lru_cache(maxsize=256)
def _pinned(name: str, constants: tuple[tuple[str, datetime | bool], ...]) -> LiteralString:
    text: str = query(name)
    for key, value in constants:
        text = text.replace(f"%({key})s", _literal(value))
    return text


def _literal(value: datetime | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"timestamptz '{value.astimezone(UTC).isoformat()}'"
