"""One process of the simulation and the clock of its machine.

Invariant: a process that is dead stays so; one that starts in its place is another. Clocks differ in their offset and a
little in their rate, as those of real machines do, and count the time for which a machine was suspended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_WALL: Final = datetime(2026, 12, 1, 12, tzinfo=UTC)


class Exited(BaseException):
    """What ends the code that ended its process."""


class Process:
    """`offset_seconds` and `rate` are of its clock: elapsed = true time × rate + offset."""

    def __init__(self, id: str, world: Any, now: Callable[[], float], *, offset_seconds: float, rate: float) -> None:
        self.id = id
        self.world = world
        self.alive = True
        self.stopped_at: float | None = None
        self.resumed_at = -1000.0
        self.suspended = False
        self.lost_seconds = 0.0
        """For how long timers did not count, because the machine was suspended."""
        self.waiting: list[asyncio.Handle] = []
        self.context = Context()
        self.at_death: list[Callable[[], object]] = []
        self.body: Any = None
        """What runs in it: a Worker or a Coordinator."""
        self.holder: Any = None
        self.drain = asyncio.Event()
        self.main: asyncio.Task[None] | None = None
        self._now = now
        self._offset_seconds = offset_seconds
        self._rate = rate

    def begun(self, main: asyncio.Task[None]) -> None:
        self.main = main

    @property
    def runs(self) -> bool:
        return self.alive and self.stopped_at is None

    def holds_back(self, handle: asyncio.Handle) -> bool:
        """Whether a callback of ours must not run now; it may run later."""
        if self.alive and self.stopped_at is None:
            return False
        if self.alive:
            self.waiting.append(handle)
        return True

    def die(self) -> None:
        """As by SIGKILL."""
        if self.alive:
            self.alive = False
            self.waiting.clear()
            for callback in self.at_death:
                callback()

    # --- the clock (ringcron.clock.Clock) ---

    def elapsed(self) -> float:
        return self._now() * self._rate + self._offset_seconds

    def wall(self) -> datetime:
        return _WALL + timedelta(seconds=self.elapsed())

    def true_time(self, elapsed: float) -> float:
        """When, in true time, the clock shows `elapsed`."""
        return (elapsed - self._offset_seconds) / self._rate
