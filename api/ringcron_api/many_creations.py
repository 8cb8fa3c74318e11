"""Many bodies of POST /jobs, read at one instant: what they have in common is read once.

Invariant: a body is read to the same job, or refused with the same faults, as `creation` reads it. Only what differs
from job to job (runAt, payload, key) is read here; everything else comes from the first body that said the same, and
every body with a fault goes the long way.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from ringcron.instants import parse_instant
from ringcron.slots import new_job_id
from ringcron.store.creating import Creation, OnConflict
from ringcron.traceparent import CallTrace
from ringcron_api.creation import read_creation
from ringcron_api.definitions import PAYLOAD_LIMIT
from ringcron_api.faults import Fault
from ringcron_api.fields import KEY_LIMIT

_PATTERNS_KEPT: Final = 1000


class CreationReader:
    """Reads the bodies of one batch; `now` is the database's clock, `trace` the call's."""

    def __init__(self, now: datetime, trace: CallTrace | None = None) -> None:
        self._now = now
        self._trace = trace
        self._patterns: dict[tuple[bytes, bool, bool], Creation] = {}
        self._replaced = 0

    def read(self, document: Any, held_back: list[Fault]) -> Creation:
        """The job that a body asks for. Raises as `read_creation` does."""
        if held_back or not isinstance(document, dict):
            return self._read_at_length(document, held_back)
        rest = document.copy()
        run_at, key, payload = rest.pop("runAt", None), rest.pop("key", None), rest.pop("payload", None)
        # Whether there is a runAt or a key decides which of the other fields are allowed.
        common = orjson.dumps(rest, option=orjson.OPT_SORT_KEYS), run_at is None, key is None
        pattern = self._patterns.get(common)
        if pattern is None:
            creation = self._read_at_length(document, held_back)
            if len(self._patterns) < _PATTERNS_KEPT:
                self._patterns[common] = creation
            return creation
        instant = _instant(run_at)
        text = orjson.dumps(payload)
        if not _is_key(key) or (instant is None and run_at is not None) or len(text) > PAYLOAD_LIMIT:
            return self._read_at_length(document, held_back)
        return self._unlike_others(
            Creation(
                new_job_id(self._now),
                pattern.common,
                instant,
                key,
                orjson.Fragment(text),
                self._now,
                pattern.scheduled_for if instant is None else instant,
                pattern.on_conflict,
            )
        )

    def _read_at_length(self, document: Any, held_back: list[Fault]) -> Creation:
        return self._unlike_others(read_creation(document, held_back, self._now, self._trace))

    def _unlike_others(self, creation: Creation) -> Creation:
        """Replacements have instants of their own: by that a later try knows which of them the first one has done."""
        if creation.on_conflict is not OnConflict.REPLACE:
            return creation
        self._replaced += 1
        created_at = self._now - timedelta(microseconds=self._replaced)
        return creation._replace(created_at=created_at)


def _instant(text: Any) -> datetime | None:
    try:
        return parse_instant(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _is_key(key: Any) -> bool:
    return key is None or (isinstance(key, str) and 1 <= len(key) <= KEY_LIMIT)
