"""An occurrence that is going: all that is decided on when a run is claimed and when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final, Protocol
from uuid import UUID

from ringcron.models import Claim, Definition, Skip, SkipReason
from ringcron.records import record

KEPT_LIMIT: Final = 100
"""Ticks that may wait their turn."""


class Ticks(Protocol):
    """The ticks of a schedule within its start and end (ringcron.schedule.Schedule)."""

    @property
    def max_runs(self) -> int | None: ...
    def next_after(self, after: datetime) -> datetime | None: ...
    def latest(self, after: datetime, until: datetime) -> datetime | None: ...
    def count(self, after: datetime, until: datetime) -> int: ...
    def upcoming(self, after: datetime, n: int) -> list[datetime]: ...


def jitter_of(job_id_bytes: bytes, window_seconds: float) -> timedelta:
    """The fixed offset of a job in [0, window), by a hash of its id."""
    if window_seconds <= 0:
        return timedelta(0)
    share = int.from_bytes(blake2b(job_id_bytes, digest_size=8, person=b"jitter").digest(), "big") / 2**64
    return timedelta(seconds=window_seconds * share)


def first_run_at(job_id: UUID, definition: Definition, instant: datetime, now: datetime) -> datetime:
    """When an occurrence that is named by `instant` is first due: its jitter later, or now where it has passed."""
    return now if instant <= now else instant + jitter_of(job_id.bytes, definition.jitter_seconds)


@record(frozen=True, kw_only=True, slots=True)
class Going:
    """An occurrence that is going: its claim, its job's definition, and what the row held when it was read.

    `ticks` is None for a one-off.
    """

    claim: Claim
    definition: Definition
    ticks: Ticks | None
    occurrences: int
    kept: tuple[datetime, ...] = ()
    after_current: Mapping[str, Any] = field(default_factory=dict)
    """What waits for the end of the run (ringcron.changes): pause, trigger, patch, cancel. A patch with its ticks."""
    waiting: Mapping[str, Any] = field(default_factory=dict)
    """The same as it is stored: what does not take effect at the end of this run is stored again."""

    @property
    def triggered(self) -> bool:
        return bool(self.after_current.get("trigger"))

    @property
    def room(self) -> int:
        """How many more occurrences may wait: KEPT_LIMIT, or what maxRuns leaves. The going one is counted already."""
        max_runs = self.ticks.max_runs if self.ticks is not None else None
        return KEPT_LIMIT if max_runs is None else max(0, min(KEPT_LIMIT, max_runs - self.occurrences))

    @property
    def jitter(self) -> timedelta:
        return jitter_of(self.claim.id.bytes, self.definition.jitter_seconds)

    def skip(self, first: datetime, last: datetime, reason: SkipReason) -> Skip:
        """The skip of `first` (known to be a tick) to `last`."""
        assert self.ticks is not None
        return Skip(first=first, last=last, count=1 + self.ticks.count(first, last), reason=reason)

    def skip_after(self, after: datetime, last: datetime, reason: SkipReason) -> Skip:
        """The skip of the ticks in (after, last]."""
        assert self.ticks is not None
        first = self.ticks.next_after(after)
        assert first is not None
        return self.skip(first, last, reason)
