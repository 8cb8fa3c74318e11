"""Who reads the time, and which clock decides what.

Invariant: PostgreSQL's clock alone decides what is due and which lease has lapsed. A process only counts how long ago
something was, on a clock that never steps and that goes on while the machine sleeps (CLOCK_BOOTTIME where there is
one). No machine's wall clock is compared with a lease. Nothing outside this module reads a clock.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_BOOTTIME: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

STEP_SECONDS: Final = 1.0
"""Less than this is what answers take, not a step. Leases of ten seconds or more have a margin that is as large."""


class Clock(Protocol):
    """Elapsed time and, for people only, wall time."""

    def elapsed(self) -> float:
        """Seconds since an arbitrary fixed point; never steps, counts suspended time, comparable between processes."""
        ...

    def wall(self) -> datetime:
        """This machine's wall clock in UTC: for logs and ids, never for a decision."""
        ...


class SystemClock:
    """The machine's clocks."""

    def elapsed(self) -> float:
        return time.clock_gettime(_BOOTTIME)

    def wall(self) -> datetime:
        return datetime.now(UTC)


class DatabaseClock:
    """The database's clock as last read, carried forward by elapsed time.

    Good for choosing ticks (the statement never goes below its own now) and for showing; never for a lease.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: tuple[datetime, float] | None = None
        self.stepped_at: float | None = None
        """When (elapsed) the database's clock was last found more than STEP_SECONDS off the estimate."""

    def observe(self, database_now: datetime, received_at: float) -> None:
        """Record that the database said `database_now` and that its answer was in hand at `received_at` (elapsed)."""
        if self._read is not None:
            said, then = self._read
            if abs((database_now - said).total_seconds() - (received_at - then)) > STEP_SECONDS:
                self.stepped_at = received_at
        self._read = (database_now, received_at)

    def now(self) -> datetime:
        """The database's now, as well as it is known; this machine's wall clock before the first answer."""
        return self.at(self._clock.elapsed())

    def at(self, elapsed: float) -> datetime:
        """The same at an instant of our own clock, for who has just read that."""
        if self._read is None:
            return self._clock.wall()
        said, received_at = self._read
        return said + timedelta(seconds=elapsed - received_at)
