"""The bound parameters that prune partitions.

Invariant: bounds only prune; `next_run_at <= now()` in the statement is the test. They are of the grain of an hour, and
reach more than an hour ahead of a clock that every answer of the database sets right. Every few seconds a peek is made
with `behind`, which reaches back without end, and the claims after it where it saw something due outside the bounds:
an error in a bound costs seconds, never a job. Nothing looks ahead without end, because planning a statement for all of
the partitions (16 ms each time that statistics of one change) kept hundreds of workers waiting at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ringcron.models import EARLIEST, PARKED


@dataclass(frozen=True, slots=True)
class Bounds:
    """next_run_at in [from_at, until_at)."""

    from_at: datetime
    until_at: datetime


UNBOUNDED: Final = Bounds(EARLIEST, PARKED)


CHANGES_PAST: Final = timedelta(minutes=20)
"""Bounds change so long after the hour: each change has every worker plan its statements anew, and on the hour itself
much is due."""


def near(now: datetime) -> Bounds:
    """From yesterday 00:00 UTC to more than an hour ahead of `now`, on the hour."""
    earlier = now - CHANGES_PAST
    midnight = earlier.replace(hour=0, minute=0, second=0, microsecond=0)
    on_the_hour = earlier.replace(minute=0, second=0, microsecond=0)
    return Bounds(midnight - timedelta(days=1), on_the_hour + timedelta(hours=3))


def behind(now: datetime) -> Bounds:
    """All that can be due at `now` or has been claimed: from the beginning to where `near` ends."""
    return Bounds(EARLIEST, near(now).until_at)
