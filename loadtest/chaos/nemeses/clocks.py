"""Faults of clocks: workers whose wall clock is hours off."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from loadtest.chaos.nemeses.base import Nemesis
from ringcron.local.cache import cache_folder, filled, unpack_debs
from ringcron.local.errors import NotAvailable

OFFSETS: Final = ("-2h", "+2h", "-45s", "+0 x1.02")
"""The last one runs 2 % fast."""
WRONG_SECONDS: Final = 12.0
BETWEEN_SECONDS: Final = 2.0
LIBRARY: Final = "usr/lib/*/faketime/libfaketimeMT.so.1"


class WrongClocks(Nemesis):
    """N15: a worker is started again with a wall clock that is hours off or runs fast (libfaketime leaves elapsed time
    alone), and later with the right one. It must start nothing early, and keep nothing from starting."""

    number = "N15"
    title = "workers have wall clocks that are hours off"
    part = "workers"

    def unavailable(self) -> str | None:
        try:
            library()
        except (NotAvailable, subprocess.CalledProcessError, OSError) as error:
            return f"libfaketime is not to be had: {error}"
        return None

    def round(self) -> Iterator[float]:
        worker = self.random.choice(sorted(self.arena.workers))
        offset = OFFSETS[self.rounds % len(OFFSETS)]
        with self.faults.during(self.number, f"{worker}."):
            self.arena.workers[worker].kill()
            self.arena.start_worker(worker, environment=faked(offset))
            try:
                yield WRONG_SECONDS
            finally:
                self.arena.workers[worker].kill()
                self.arena.start_worker(worker)
        self.rounds += 1
        yield BETWEEN_SECONDS


def faked(offset: str) -> dict[str, str]:
    """The environment of a process whose wall clock is off by so much."""
    return {
        "LD_PRELOAD": str(library()),
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def library() -> Path:
    """libfaketime: the machine's, or one unpacked into our cache. Raises NotAvailable."""
    for root in (Path("/"), filled(cache_folder() / "libfaketime", lambda into: unpack_debs(["libfaketime"], into))):
        found = sorted(root.glob(LIBRARY))
        if found:
            return found[0]
    raise NotAvailable("the package libfaketime holds no libfaketimeMT.so.1")
