"""The members of a schedule document: types, names and bounds, every fault with its pointer.

Invariant: what leaves `read_document` is sound in each member; whether the whole ever ticks is decided in `schedule`.
A member that is null counts as absent, so that a merge patch can take it away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from ringcron.cron import Cron, Zone, check_cron, compile_cron, known_zone, nearest_zone
from ringcron.durations import format_duration, parse_duration
from ringcron.errors import ScheduleError
from ringcron.every import SHORTEST, Every
from ringcron.instants import format_instant, parse_instant

MEMBERS: Final = ("cron", "timezone", "every", "anchor", "startAt", "endAt", "maxRuns")
MOST_RUNS: Final = 2**31 - 1
MOST_UNKNOWN: Final = 20
"""Unknown members that are named in one answer: finding the nearest name costs time."""
_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleParts:
    """A document whose members are sound."""

    ticks: Cron | Every
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None


def read_document(document: object, created_at: datetime | None) -> ScheduleParts | list[ScheduleError]:
    """The parts of a document, or all faults of its members."""
    if isinstance(document, str):
        document = {"cron": document}
    if not isinstance(document, Mapping):
        message = 'must be an object such as {"cron": "0 9 * * *", "timezone": "Europe/Madrid"}, or cron text in UTC'
        return [ScheduleError(message, code="type")]
    reading = _Reading({name: value for name, value in document.items() if value is not None})
    reading.unknown()
    ticks = reading.ticks(created_at)
    start_at, end_at = reading.instant("startAt"), reading.instant("endAt")
    if start_at is not None and end_at is not None and end_at < start_at:
        reading.fault("endAt", f"lies before startAt, {format_instant(start_at)}", "out-of-range")
    max_runs = reading.max_runs()
    if reading.faults or ticks is None:
        return reading.faults
    return ScheduleParts(ticks=ticks, start_at=start_at, end_at=end_at, max_runs=max_runs)


class _Reading:
    """One document being read; `faults` in the order in which they were met."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = members
        self.faults: list[ScheduleError] = []

    def fault(self, member: str, message: str, code: str) -> None:
        self.faults.append(ScheduleError(message, pointer=f"/{_escaped(member)}" if member else "", code=code))

    def unknown(self) -> None:
        for name in [str(name) for name in self._members if name not in MEMBERS][:MOST_UNKNOWN]:
            close = get_close_matches(name[:64], MEMBERS, n=1)
            meant = f"did you mean {close[0]}?" if close else f"known are {', '.join(MEMBERS)}"
            self.fault(name, f"is not a member of a schedule: {meant}", "unknown-field")

    def ticks(self, created_at: datetime | None) -> Cron | Every | None:
        has_cron, has_every = "cron" in self._members, "every" in self._members
        if has_cron == has_every:
            code = "required" if not has_cron else "invalid"
            self.fault("", "must have exactly one of cron and every", code)
            return None
        if has_cron:
            if "anchor" in self._members:
                self.fault("anchor", "belongs to every: cron needs none; startAt says from when", "invalid")
            return self._cron()
        if "timezone" in self._members:
            self.fault("timezone", "belongs to cron: an interval has no local time; give anchor an offset", "invalid")
        return self._every(created_at)

    def _cron(self) -> Cron | None:
        zone = self._zone()
        text = self._members["cron"]
        try:
            if zone is not None and isinstance(text, str):
                return compile_cron(text, zone)
        except ScheduleError:
            pass  # all its faults are collected below
        checked = check_cron(text)
        if isinstance(checked, list):
            self.faults += checked
        return None

    def _zone(self) -> Zone | None:
        name = self._members.get("timezone", "UTC")
        if not isinstance(name, str):
            self.fault("timezone", "must be the name of a time zone, such as Europe/Madrid", "type")
            return None
        try:
            return known_zone(name)
        except KeyError:
            near = nearest_zone(name)
            advice = f"did you mean {near}?" if near else "write a name such as Europe/Madrid or UTC"
            if name[:1] in ("+", "-"):
                advice = "an offset has no rules: write a name such as Europe/Madrid, or Etc/GMT-2 for two hours east"
            self.fault("timezone", f"{name[:64]!a} is no time zone of the tz database: {advice}", "unknown-timezone")
            return None

    def _every(self, created_at: datetime | None) -> Every | None:
        every = self._text("every", parse_duration, "PT15M")
        if every is not None and every < SHORTEST:
            self.fault("every", f"must be at least {format_duration(SHORTEST)}", "out-of-range")
        anchor = self.instant("anchor") if "anchor" in self._members else created_at
        if anchor is None and "anchor" not in self._members:
            self.fault("anchor", "is needed where no instant of creation is known", "required")
        return Every(every, anchor) if every is not None and every >= SHORTEST and anchor is not None else None

    def instant(self, member: str) -> datetime | None:
        return self._text(member, parse_instant, "2027-01-31T09:00:00Z")

    def max_runs(self) -> int | None:
        value = self._members.get("maxRuns")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault("maxRuns", "must be a whole number", "type")
        elif not 1 <= value <= MOST_RUNS:
            self.fault("maxRuns", f"must lie in 1 to {MOST_RUNS}", "out-of-range")
        else:
            return value
        return None

    def _text(self, member: str, read: Callable[[str], _Value], example: str) -> _Value | None:
        value = self._members.get(member)
        if value is None:
            return None
        if not isinstance(value, str):
            self.fault(member, f'must be text such as "{example}"', "type")
            return None
        try:
            return read(value)
        except ValueError as fault:
            self.fault(member, str(fault), "invalid")
            return None


def _escaped(member: str) -> str:
    """A member's name as a JSON pointer writes it (RFC 6901)."""
    return member.replace("~", "~0").replace("/", "~1")
