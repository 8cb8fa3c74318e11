"""What a call's arguments become in paths, queries and merge patches."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic.alias_generators import to_camel

from ringcron.client.schedules import Cron, Every
from ringcron.client.values import Value, document_of, instant_text
from ringcron.durations import format_duration

_ID: Final = re.compile(r"[0-9A-Za-z_-]+(\.[0-9]+)?")


def id_in_path(text: object) -> str:
    """The id of a job or a run, as a path holds it. ValueError for what no id can be: a path would change its meaning.

    A UUID object is as good as its text.
    """
    if not _ID.fullmatch(str(text)):
        raise ValueError(f"{str(text)!r} is no id of a job or a run")
    return str(text)


def query_of(**parameters: object) -> dict[str, str]:
    """The parameters that are not None, as text."""
    return {name: _text(value) for name, value in parameters.items() if value is not None}


def merge_patch_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes by field name as a merge patch (RFC 7396). Of `schedule` and `run_at` one takes the other's place."""
    patch = {to_camel(name): _patched(value) for name, value in changes.items()}
    for name, other in (("runAt", "schedule"), ("schedule", "runAt")):
        if patch.get(name) is not None:
            patch.setdefault(other, None)
    return patch


def fresh_key() -> str:
    """An Idempotency-Key that nobody else has."""
    return secrets.token_hex(16)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return instant_text(value) if isinstance(value, datetime) else str(value)


def _patched(value: Any) -> Any:
    match value:
        case Cron() | Every():
            # A merge would keep what the old schedule had and the new one does not name.
            return {**_NO_SCHEDULE, **document_of(value)}
        case Value():
            return document_of(value, whole=True)
        case datetime():
            return instant_text(value)
        case timedelta():
            return format_duration(value)
    return value


_NO_SCHEDULE: Final = dict.fromkeys([*document_of(Cron(""), whole=True), *document_of(Every(timedelta(0)), whole=True)])
"""Every member of a schedule, without a value."""
