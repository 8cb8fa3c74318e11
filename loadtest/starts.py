"""Starts of runs, as handlers write them down: one fixed-size record, one write, no lock.

Invariant: each worker process appends to a file of its own, so records never mix, and a worker that is killed loses
none that it wrote. `at` is ringcron's elapsed clock, which all processes of a machine share; the harness carries it
over to the database's clock.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from ringcron import RunContext
from ringcron.clock import SystemClock

FOLDER_VARIABLE: Final = "LOADTEST_STARTS"
"""The folder that a worker's start log lies in; unset: starts are not written down."""

_RECORD: Final = struct.Struct("<16sqddii")
RECORD_BYTES: Final = _RECORD.size


class Start(NamedTuple):
    """One start. `scheduled_for` is in Unix seconds, `at` in seconds of the elapsed clock."""

    job_id: UUID
    lease_generation: int
    scheduled_for: float
    at: float
    attempt: int
    pid: int


class StartLog:
    """The start log of one worker process; opened at the first start."""

    def __init__(self, folder: str | None) -> None:
        """`folder` None: starts are not written down."""
        self._folder = folder
        self._file: int | None = None
        self._pid = 0
        self._clock = SystemClock()

    def write(self, ctx: RunContext) -> None:
        """Write one start down: some 2 µs."""
        at = self._clock.elapsed()
        if self._file is None:
            if self._folder is None:
                return
            self._pid = os.getpid()
            path = os.path.join(self._folder, f"{self._pid}.starts")
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        scheduled_for = ctx.scheduled_for.timestamp()
        os.write(
            self._file,
            _RECORD.pack(ctx.job_id.bytes, ctx.lease_generation, scheduled_for, at, ctx.attempt, self._pid),
        )


class StartLogs:
    """The start logs of all workers, as the harness reads them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def count(self) -> int:
        """How many starts have been written down and not been read; costs the workers nothing."""
        return sum(path.stat().st_size - self._read.get(path, 0) for path in self._files()) // RECORD_BYTES

    def read(self) -> list[Start]:
        """The starts written down since the last call, in order of time."""
        return sorted(self._new(), key=lambda start: start.at)

    def _new(self) -> Iterator[Start]:
        for path in self._files():
            if path.stat().st_size == self._read.get(path, 0):
                continue
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                records = file.read()
            records = records[: len(records) // RECORD_BYTES * RECORD_BYTES]
            self._read[path] = self._read.get(path, 0) + len(records)
            for job_id, generation, scheduled_for, at, attempt, pid in _RECORD.iter_unpack(records):
                yield Start(UUID(bytes=job_id), generation, scheduled_for, at, attempt, pid)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.starts"))
