"""Schedules: the ticks that a stored document names.

Invariant: ticks come from the schedule alone, never from when a run ended; each is strictly later than the one that it
follows. The document (`Schedule.document`) is authoritative: it holds all that ticks depend on, beside the version of
the tz database. Nothing here reads a clock: `created_at` is the database's.

    {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Madrid", "startAt"?, "endAt"?, "maxRuns"?}
    {"every": "PT15M", "anchor": "2027-01-01T00:00:00Z",     "startAt"?, "endAt"?, "maxRuns"?}

`anchor` fixes the phase of an interval in both directions; `startAt` and `endAt` are included; `maxRuns` counts
occurrences, which only the store knows, so no function here heeds it. A bare text is cron in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ringcron.cron import ClockMark, Cron, tzdata_version
from ringcron.errors import NeverFires, ScheduleError
from ringcron.every import Every
from ringcron.instants import MICROSECOND, format_instant
from ringcron.schedule_document import ScheduleParts, read_document

__all__ = ["ClockMark", "Schedule", "parse_schedule", "schedule_faults", "tzdata_version"]

NEVER_YEARS: Final = 8
"""A schedule whose first tick lies further ahead than this is refused when it is created."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A recurring schedule. Instants go in aware and come out in UTC; ticks lie in [EARLIEST, LATEST)."""

    document: Mapping[str, Any]
    """The normal form, JSON-able: what is stored. Reading it again gives the same schedule."""
    ticks: Cron | Every
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None

    @property
    def timezone(self) -> str | None:
        """The zone whose rules move the ticks; None for an interval."""
        return self.ticks.zone.name if isinstance(self.ticks, Cron) else None

    def next_after(self, after: datetime) -> datetime | None:
        """The first tick strictly after `after`; None when `endAt` comes first.

        NeverFires when the schedule has no end and yet no further tick; ScheduleError when the tick found is not later
        than `after`. Either way the caller lets the job go dead with that reason.
        """
        tick = self.ticks.next(self._after(after))
        if tick is None:
            if self.end_at is None:
                raise NeverFires(f"the schedule has no tick after {format_instant(after)}", code="never-fires")
            return None
        if tick <= after:
            raise ScheduleError(f"the tick {format_instant(tick)} is not later than {format_instant(after)}")
        return tick if self.end_at is None or tick <= self.end_at else None

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last tick in (after, until]."""
        return self.ticks.previous(self._until(until), self._after(after))

    def count(self, after: datetime, until: datetime) -> int:
        """How many ticks lie in (after, until]."""
        return self.ticks.count(self._after(after), self._until(until))

    def upcoming(self, after: datetime, n: int) -> list[datetime]:
        """The first `n` ticks strictly after `after`, fewer when the schedule ends; NeverFires when there is none."""
        found: list[datetime] = []
        while len(found) < n:
            try:
                tick = self.next_after(found[-1] if found else after)
            except NeverFires:
                if not found:
                    raise
                break
            if tick is None:
                break
            found.append(tick)
        return found

    def marks(self, after: datetime, n: int) -> list[tuple[datetime, ClockMark]]:
        """Those of the first `n` ticks after `after` that a clock change moved or repeated, with what it did."""
        if isinstance(self.ticks, Every):
            return []
        marked = [(tick, self.ticks.mark(tick)) for tick in self.upcoming(after, n)]
        return [(tick, mark) for tick, mark in marked if mark is not None]

    def _after(self, after: datetime) -> datetime:
        return after if self.start_at is None else max(after, self.start_at - MICROSECOND)

    def _until(self, until: datetime) -> datetime:
        return until if self.end_at is None else min(until, self.end_at)


def parse_schedule(document: str | Mapping[str, Any], *, created_at: datetime | None = None) -> Schedule:
    """The schedule that a document names.

    `created_at` is given where a job is created: it is the default anchor of an interval, and the instant from which a
    first tick must come within eight years. A stored document is read without it. ScheduleError or NeverFires with the
    first fault; the pointer is relative to the document.
    """
    schedule = _parse(document, created_at)
    if isinstance(schedule, list):
        raise schedule[0]
    return schedule


def schedule_faults(document: str | Mapping[str, Any], *, created_at: datetime | None = None) -> list[ScheduleError]:
    """Every fault of a document; empty when `parse_schedule` accepts it."""
    schedule = _parse(document, created_at)
    return schedule if isinstance(schedule, list) else []


def _parse(document: object, created_at: datetime | None) -> Schedule | list[ScheduleError]:
    parts = read_document(document, created_at)
    if isinstance(parts, list):
        return parts
    schedule = Schedule(
        document=_normal_form(parts),
        ticks=parts.ticks,
        start_at=parts.start_at,
        end_at=parts.end_at,
        max_runs=parts.max_runs,
    )
    never = _never(schedule, created_at)
    return schedule if never is None else [never]


def _normal_form(parts: ScheduleParts) -> dict[str, Any]:
    document: dict[str, Any]
    if isinstance(parts.ticks, Cron):
        document = {"cron": parts.ticks.text, "timezone": parts.ticks.zone.name}
    else:
        document = {"every": parts.ticks.text, "anchor": format_instant(parts.ticks.anchor)}
    if parts.start_at is not None:
        document["startAt"] = format_instant(parts.start_at)
    if parts.end_at is not None:
        document["endAt"] = format_instant(parts.end_at)
    if parts.max_runs is not None:
        document["maxRuns"] = parts.max_runs
    return document


def _never(schedule: Schedule, created_at: datetime | None) -> NeverFires | None:
    """Why a schedule is refused although its text is sound."""
    ticks = schedule.ticks
    if isinstance(ticks, Cron) and ticks.dateless is not None:
        return NeverFires(ticks.dateless, pointer="/cron", code="never-fires")
    if created_at is None:
        return None
    begin = created_at if schedule.start_at is None else max(created_at, schedule.start_at - MICROSECOND)
    first = ticks.next(begin, years=NEVER_YEARS)
    if first is None:
        message = f"has no tick within eight years of {format_instant(begin)}"
        if schedule.timezone is not None:
            message += f" in {schedule.timezone}"
        return NeverFires(message, pointer="/cron" if isinstance(ticks, Cron) else "/every", code="never-fires")
    if schedule.end_at is not None and schedule.end_at < first:
        message = f"lies before the first tick, {format_instant(first)}"
        return NeverFires(message, pointer="/endAt", code="never-fires")
    return None
