"""Ticks at a fixed interval: anchor + n × every, for every whole n.

Invariant: whole microseconds only, so that the thousandth tick is as exact as the first. A day is 24 hours and no zone
moves a tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ringcron.durations import format_duration
from ringcron.instants import MICROSECOND
from ringcron.models import EARLIEST, LATEST

SHORTEST: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Every:
    """An interval of at least a second and the anchor of its phase."""

    every: timedelta
    anchor: datetime

    @property
    def text(self) -> str:
        """The interval in normal form."""
        return format_duration(self.every)

    def next(self, after: datetime, years: int | None = None) -> datetime | None:
        """The first tick strictly after `after`, None when it lies `LATEST` or later; `years` is for cron only."""
        after = max(after, EARLIEST - MICROSECOND)
        tick = self._tick(self._passed(after) + 1)
        return tick if tick < LATEST else None

    def previous(self, until: datetime, after: datetime) -> datetime | None:
        """The last tick in (after, until]."""
        after, until = self._bounds(after, until)
        tick = self._tick(self._passed(until))
        return tick if tick > after else None

    def count(self, after: datetime, until: datetime) -> int:
        """How many ticks lie in (after, until]."""
        after, until = self._bounds(after, until)
        return max(0, self._passed(until) - self._passed(after))

    def _bounds(self, after: datetime, until: datetime) -> tuple[datetime, datetime]:
        return max(after, EARLIEST - MICROSECOND), min(until, LATEST - MICROSECOND)

    def _passed(self, instant: datetime) -> int:
        """The n of the last tick at or before an instant."""
        return (instant - self.anchor) // self.every

    def _tick(self, n: int) -> datetime:
        return self.anchor + n * self.every
