"""Until when the worker itself may live: the earliest limit of the runs in its event loop.

Invariant: the guard never has a later deadline than the earliest limit, and is not left with an earlier one for longer
than DEFER_SECONDS while that one is at least SAFE_SECONDS away. So a flood of short runs costs few messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final

from ringcron.clock import Clock

DEFER_SECONDS: Final = 0.5
SAFE_SECONDS: Final = 2.0


class WorkerDeadline:
    """`tell` gives the guard a deadline; inf: none."""

    def __init__(self, clock: Clock, tell: Callable[[float], object]) -> None:
        self._clock = clock
        self._tell = tell
        self._limits: dict[object, float] = {}
        self._told = inf
        self._later: asyncio.TimerHandle | asyncio.Handle | None = None

    def put(self, run: object, limit: float) -> None:
        """A run in the event loop must be over at `limit`."""
        if self._limits.get(run) == limit:
            return
        self._limits[run] = limit
        if limit < self._told:
            self._say(limit)
        else:
            self._look_later()

    def drop(self, run: object) -> None:
        """The run is over."""
        if self._limits.pop(run, None) is not None:
            self._look_later()

    def close(self) -> None:
        """Take the deadline back, whatever runs."""
        self._limits.clear()
        if self._later is not None:
            self._later.cancel()
        self._say(inf)

    def _look_later(self) -> None:
        if self._later is not None:
            return  # soon enough: at most DEFER_SECONDS, of at least SAFE_SECONDS, were waited for
        safe = self._told > self._clock.elapsed() + SAFE_SECONDS
        loop = asyncio.get_running_loop()
        self._later = loop.call_later(DEFER_SECONDS, self._look) if safe else loop.call_soon(self._look)

    def _look(self) -> None:
        self._later = None
        self._say(min(self._limits.values(), default=inf))

    def _say(self, limit: float) -> None:
        if limit != self._told:
            self._told = limit
            self._tell(limit)
