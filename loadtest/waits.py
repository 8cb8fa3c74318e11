"""What workers wait for inside PostgreSQL, and how many due rows their claims would pass over: others hold them.

Both are sampled while something is due, on a connection of its own, and lock nothing. `Lock` is one transaction that
waits for another's row or page; `LWLock` is PostgreSQL's own; `IO: WalSync` is the disk that makes a commit durable.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from loadtest.database import Database
from ringcron.clock import SystemClock

SAMPLE_SECONDS: Final = 0.05


@dataclass(kw_only=True, slots=True)
class Waits:
    """Sums over the samples of a run in which something was due."""

    samples: int = 0
    sessions: Counter[str] = field(default_factory=Counter)
    """Sessions with a statement in hand, by what they waited for."""
    due: int = 0
    locked: int = 0
    """Due rows that a claim would have passed over."""

    def document(self) -> dict[str, Any]:
        """For the record."""
        return {
            "samples": self.samples,
            "sessions": dict(self.sessions),
            "dueRows": self.due,
            "lockedRows": self.locked,
        }


class WaitSampler:
    """Samples in a thread of its own, within `with`."""

    def __init__(self, url: str, *, handler: str, workers: Sequence[str]) -> None:
        """`workers`: their names."""
        self._url = url
        self._handler = handler
        self._names = [f"{name}.%" for name in workers]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wait sampler", daemon=True)
        self._clock = SystemClock()
        self.waits = Waits()

    def __enter__(self) -> WaitSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with Database(self._url) as database:
            while not self._stop.is_set():
                began = self._clock.elapsed()
                try:
                    self._sample(database)
                except psycopg.Error:
                    return  # the cluster has ended; what was seen stays
                self._stop.wait(max(0.0, began + SAMPLE_SECONDS - self._clock.elapsed()))

    def _sample(self, database: Database) -> None:
        due, locked = database.run("count_locked_due", handler=self._handler)[0]
        if not due:
            return
        self.waits.samples += 1
        self.waits.due += due
        self.waits.locked += locked
        self.waits.sessions.update(dict(database.run("sample_waits", names=self._names)))
