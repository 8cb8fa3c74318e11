"""A wall clock that can be stepped: PostgreSQL's, by libfaketime.

Invariant: all processes of the server read the offset from one file at each look at the clock, and the file is replaced
whole: the clock steps for all of them at once, as a machine's does. Elapsed time (CLOCK_MONOTONIC) is left alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from loadtest.chaos.history import Step
from ringcron.clock import SystemClock
from ringcron.local.cache import cache_folder, filled, unpack_debs
from ringcron.local.errors import NotAvailable

LIBRARY: Final = "usr/lib/*/faketime/libfaketimeMT.so.1"
REAL_TIME_ELAPSES: Final[Mapping[str, str]] = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}


class FakeClock:
    """The clock of who is started with `environment`. It begins right."""

    def __init__(self, folder: Path) -> None:
        """Files are made in `folder`, which any user may enter. Raises NotAvailable."""
        folder.mkdir()
        folder.chmod(0o755)
        self.steps: list[Step] = []
        """In elapsed seconds."""
        self._file = folder / "offset"
        self._library = folder / "libfaketime.so"
        self._clock = SystemClock()
        shutil.copyfile(library(), self._library)  # our cache may be closed to the user that PostgreSQL runs as
        self._library.chmod(0o755)
        self._write(0.0)

    @property
    def environment(self) -> dict[str, str]:
        """Of a process whose clock this is to be."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "NO_FAKE_STAT": "1",
            **REAL_TIME_ELAPSES,
        }

    def step(self, offset: float, last_seq: Callable[[], int]) -> None:
        """Be off by so many seconds from now on. `last_seq` tells the newest noted change of a job."""
        self._write(offset)
        at = self._clock.elapsed()
        self.steps.append(Step(at=at, offset=offset, seq=last_seq()))

    def _write(self, offset: float) -> None:
        scratch = self._file.with_suffix(".new")
        scratch.write_text(f"{offset:+.0f}\n", encoding="ascii")
        scratch.chmod(0o644)
        os.replace(scratch, self._file)


def fake_clock(folder: Path) -> FakeClock | None:
    """One with its files in that folder; None where libfaketime is not to be had."""
    try:
        return FakeClock(folder)
    except (NotAvailable, subprocess.CalledProcessError, OSError):
        return None


def faked(offset: str) -> dict[str, str]:
    """The environment of a process whose wall clock is off by so much for good."""
    return {"LD_PRELOAD": str(library()), "FAKETIME": offset, **REAL_TIME_ELAPSES}


def library() -> Path:
    """libfaketime: the machine's, or one unpacked into our cache. Raises NotAvailable."""
    for root in (Path("/"), filled(cache_folder() / "libfaketime", lambda into: unpack_debs(["libfaketime"], into))):
        found = sorted(root.glob(LIBRARY))
        if found:
            return found[0]
    raise NotAvailable("the package libfaketime holds no libfaketimeMT.so.1")
