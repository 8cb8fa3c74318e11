"""What is read aside from the pictures: a picture shows what was read last, and never waits for it twice.

Invariant: one reading under way at a time, none while nobody asks, and less than a tenth of the time spent on it. What
fails, or takes too long, is told as not known (None) once the last that was read is older than KEPT_SECONDS.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import structlog

from ringcron.clock import Clock
from ringcron.errors import StoreUnavailable

KEPT_SECONDS: Final = 60.0
FIRST_WAIT_SECONDS: Final = 2.0
"""Where nothing is known yet, a picture waits so long, once."""
PAUSE_SHARE: Final = 10.0
"""After a reading nothing is read for so many times as long as it took, at least."""

_log = structlog.get_logger(__name__)
T = TypeVar("T")


class Aside(Generic[T]):
    """One thing that is read every `every_seconds` while somebody asks for it. `what`: its name in the log."""

    def __init__(self, read: Callable[[], Awaitable[T]], clock: Clock, *, every_seconds: float, what: str) -> None:
        self._read = read
        self._clock = clock
        self._every_seconds = every_seconds
        self._what = what
        self._latest: T | None = None
        self._read_at = 0.0
        self._not_before = 0.0
        self._waits = True
        self._reading: asyncio.Task[None] | None = None

    async def latest(self) -> T | None:
        """What was read last; None: not known."""
        if (self._reading is None or self._reading.done()) and self._clock.elapsed() >= self._not_before:
            self._reading = asyncio.create_task(self._look())
        if self._known() is None and self._waits and self._reading is not None:
            await asyncio.wait((self._reading,), timeout=FIRST_WAIT_SECONDS)
            self._waits = self._known() is not None
        return self._known()

    async def close(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading

    def _known(self) -> T | None:
        return self._latest if self._clock.elapsed() - self._read_at < KEPT_SECONDS else None

    async def _look(self) -> None:
        began = self._clock.elapsed()
        went_well = False
        try:
            self._latest = await self._read()
            self._read_at = self._clock.elapsed()
            went_well = True
        except StoreUnavailable as error:
            _log.warning("the dashboard could not read this", what=self._what, reason=str(error))
        except Exception:
            _log.exception("the dashboard could not read this", what=self._what)
        finally:
            self._waits = went_well
            now = self._clock.elapsed()
            self._not_before = max(began + self._every_seconds, now + PAUSE_SHARE * (now - began))
