"""What `loadtest compare` and the programs of peers say to each other.

    PROGRAM schema                          make the peer's schema in an empty database
    PROGRAM enqueue JOBS AT SPACING         so many jobs, due at AT (Unix seconds) + n × SPACING, by its bulk call;
                                            prints {"seconds": …}, connecting not counted
    PROGRAM work                            run jobs until killed; prints "ready"

The database is named by COMPARE_DATABASE_URL. Each start is written to <process id>.starts in the folder COMPARE_STARTS
as two little-endian doubles, the job's number and Unix seconds, by one write. COMPARE_JOB_SECONDS is what a job takes.
This file needs the standard library only: peers have environments of their own, without ringcron.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

CHUNK = 1000
"""Jobs of one bulk call."""
RECORD = struct.Struct("<dd")
DATABASE_VARIABLE = "COMPARE_DATABASE_URL"
STARTS_VARIABLE = "COMPARE_STARTS"
JOB_SECONDS_VARIABLE = "COMPARE_JOB_SECONDS"
READY = "ready"


class Order(NamedTuple):
    """So many jobs to create: number n is due at `at` + n × `spacing`, in Unix seconds."""

    jobs: int
    at: float
    spacing: float

    def chunks(self, size: int) -> Iterator[list[tuple[int, float]]]:
        """Number and instant of each job, `size` at a time."""
        for first in range(0, self.jobs, size):
            last = min(first + size, self.jobs)
            yield [(seq, self.at + seq * self.spacing) for seq in range(first, last)]


class StartLog:
    """Writes starts down; opened at the first."""

    def __init__(self) -> None:
        self._folder = os.environ.get(STARTS_VARIABLE)
        self._file: int | None = None

    def write(self, seq: int) -> None:
        """Write one start down: about 1 µs."""
        if self._file is None:
            if self._folder is None:
                return
            path = os.path.join(self._folder, f"{os.getpid()}.starts")
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(self._file, RECORD.pack(seq, time.time()))


def database_url() -> str:
    return os.environ[DATABASE_VARIABLE]


def job_seconds() -> float:
    return float(os.environ.get(JOB_SECONDS_VARIABLE, "0"))


def order() -> Order:
    """The order on the command line of `enqueue`."""
    return Order(int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))


def say_took(seconds: float) -> None:
    print(json.dumps({"seconds": seconds}), flush=True)


def say_ready() -> None:
    print(READY, flush=True)
