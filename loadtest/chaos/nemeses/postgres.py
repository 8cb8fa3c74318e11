"""Faults of PostgreSQL: crashed, away, frozen."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from io import BufferedWriter
from pathlib import Path
from typing import Final

import psycopg

from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import EVERYTHING, Bite, Nemesis
from loadtest.chaos.nemeses.workers import busiest
from loadtest.database import Database
from loadtest.usage import trees_of

BETWEEN_SECONDS: Final = 12.0
AWAY_SECONDS: Final = 20.0
READY_SECONDS: Final = 60.0
HELD_SECONDS: Final = 30.0
SOONER_SECONDS: Final = 0.5
FULL_SECONDS: Final = 20.0
FILLER: Final = "filler"
OWNERS_SHARE: Final = 0.5
"""Of a lease: for so long after the server is back nobody may take a lease back. (Promised is a whole one, counted from
when a worker is connected again.)"""


class PostgresNemesis(Nemesis):
    """What they have in common: the harness's own connection goes too, and the server must be back in the end."""

    part = "postgres"

    def crash(self) -> None:
        """End the server at once; nothing committed is lost."""
        self.arena.forget_database()
        self.arena.postgres.kill()

    def come_back(self) -> Iterator[float]:
        """Start it, and wait until it takes connections."""
        self.arena.postgres.spawn()
        waited = 0.0
        while not self.arena.postgres.is_ready() and waited < READY_SECONDS:
            waited += 0.1
            yield 0.1

    def heal(self) -> None:
        process = self.arena.postgres.process
        if process is not None and process.poll() is not None:
            self.arena.postgres.start()


class Restarting(PostgresNemesis):
    """N5: an immediate restart (SIGQUIT, crash recovery)."""

    number = "N5"
    title = "PostgreSQL is restarted without a shutdown"

    def round(self) -> Iterator[float]:
        with self.faults.during(self.number, EVERYTHING, after=self.arena.plan.lease * OWNERS_SHARE):
            self.crash()
            yield from self.come_back()
        self.rounds += 1
        yield BETWEEN_SECONDS

    def bite(self, history: History, seconds: float) -> Bite:
        cut = sum(
            log.read_bytes().count(b"the database cannot be reached") for log in self.arena.logs.glob("worker-*.log")
        )
        return Bite(
            number=self.number,
            what=f"statements of workers cut by {self.rounds} restarts",
            counted=cut if self.rounds else 0,
            wanted=1,
        )


class Away(PostgresNemesis):
    """N6: PostgreSQL is stopped for 20 s. One worker is stopped when it comes back, for less than a lease: it must be
    given the time to hand back what it holds, whoever sees that its leases have lapsed."""

    number = "N6"
    title = "PostgreSQL is away for longer than a lease"

    def round(self) -> Iterator[float]:
        late = busiest(self)
        began = self.faults.clock.elapsed()
        try:
            with self.faults.during(self.number, EVERYTHING, after=self.arena.plan.lease * OWNERS_SHARE):
                self.crash()
                self.rounds += 1
                yield AWAY_SECONDS
                if late is not None:
                    late.pause()
                yield from self.come_back()
            yield self.arena.plan.lease * OWNERS_SHARE - SOONER_SECONDS
        finally:
            if late is not None:
                late.resume()
                self.faults.add(self.number, f"{late.name}.", began, after=self.arena.plan.lease)
        yield BETWEEN_SECONDS


class Frozen(PostgresNemesis):
    """N7: every process of PostgreSQL is stopped (SIGSTOP) for a lease and 5 s: connections stay open and dumb,
    and what was said into them is done when it thaws."""

    number = "N7"
    title = "PostgreSQL freezes for longer than a lease"

    def round(self) -> Iterator[float]:
        process = self.arena.postgres.process
        if process is None or process.poll() is not None:
            return
        self.arena.forget_database()
        with self.faults.during(self.number, EVERYTHING, after=self.arena.plan.lease * OWNERS_SHARE):
            self._send(signal.SIGSTOP)
            try:
                yield self.arena.plan.lease + 5.0
            finally:
                self._send(signal.SIGCONT)
        self.rounds += 1
        yield BETWEEN_SECONDS

    def heal(self) -> None:
        self._send(signal.SIGCONT)
        super().heal()

    def _send(self, sign: signal.Signals) -> None:
        process = self.arena.postgres.process
        if process is None or process.poll() is not None:
            return
        # The postmaster first: it would start new processes.
        for pid in [process.pid, *(one for one in trees_of([process.pid]) if one != process.pid)]:
            if Path(f"/proc/{pid}").exists():
                try:
                    os.kill(pid, sign)
                except ProcessLookupError:
                    continue  # it has just ended


class Full(PostgresNemesis):
    """N16: the disk of PostgreSQL is full for 20 s. It may crash over it; then it is started again."""

    number = "N16"
    title = "the disk of PostgreSQL is full"
    small_disk = True

    def unavailable(self) -> str | None:
        return None if self.arena.disk is not None else "no file system can be mounted here (that needs root)"

    def round(self) -> Iterator[float]:
        disk = self.arena.disk
        assert disk is not None
        with self.faults.during(self.number, EVERYTHING, after=self.arena.plan.lease):
            waited = 0.0
            with (disk / FILLER).open("ab") as filler:
                while waited < FULL_SECONDS:
                    self._fill(filler, disk)
                    waited += 0.5
                    yield 0.5
            (disk / FILLER).unlink()
            yield 1.0
            self.heal()
        self.rounds += 1
        yield BETWEEN_SECONDS

    def _fill(self, filler: BufferedWriter, disk: Path) -> None:
        """Take what is free."""
        space = os.statvfs(disk)
        free = space.f_bavail * space.f_frsize
        if free:
            with contextlib.suppress(OSError):
                os.posix_fallocate(filler.fileno(), os.fstat(filler.fileno()).st_size, free)

    def heal(self) -> None:
        if self.arena.disk is not None:
            (self.arena.disk / FILLER).unlink(missing_ok=True)
        super().heal()

    def bite(self, history: History, seconds: float) -> Bite:
        logs = [self.arena.postgres.log, *self.arena.logs.glob("postgres*.log")]  # of servers that were replaced, too
        refused = sum(log.read_bytes().count(b"No space left on device") for log in logs)
        return Bite(
            number=self.number,
            what=f"complaints of PostgreSQL about {self.rounds} full disks",
            counted=refused,
            wanted=1,
        )


class Snapshot(Nemesis):
    """N23: somebody holds an old snapshot, so that nothing that dies can be cleared away. The server may end it."""

    number = "N23"
    title = "an old snapshot is held"
    part = "snapshot"

    def round(self) -> Iterator[float]:
        with (
            contextlib.suppress(psycopg.Error),  # the server may be away just then
            Database(self.arena.postgres.url) as database,
            self.faults.during(self.number, "snapshot"),
        ):
            database.run("chaos/begin_snapshot")
            database.run("chaos/hold_snapshot")
            self.rounds += 1
            yield HELD_SECONDS
        yield 1.0
