"""Faults of clocks: workers whose wall clock is hours off, a database whose clock steps."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Final

from loadtest.chaos.faketime import FakeClock, faked, library
from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import EVERYTHING, Bite, Nemesis
from ringcron.local.errors import NotAvailable

OFFSETS: Final = ("-2h", "+2h", "-45s", "+0 x1.02")
"""The last one runs 2 % fast."""
WRONG_SECONDS: Final = 12.0
BETWEEN_SECONDS: Final = 2.0
STEPS: Final = (30.0, 0.0, -30.0, 0.0)
"""The database's clock is off by so many seconds, one after the other."""
STEPPED_SECONDS: Final = 9.0
"""Longer than a lease: whoever is to lose one would have lost it by then."""
NEAR_SECONDS: Final = 1.0


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


class SteppingClock(Nemesis):
    """N15-database: the database's wall clock is stepped forward by 30 s and back, back and forward. No lease may be
    taken from a worker that lives, and nothing be lost or run twice; early and late are what that clock says."""

    number = "N15-database"
    title = "the wall clock of PostgreSQL steps by 30 s, forward and back"
    part = "postgres"
    alone = True
    fakes_clock = True

    def unavailable(self) -> str | None:
        return None if self.arena.fake_clock is not None else "libfaketime is not to be had"

    @property
    def clock(self) -> FakeClock:
        """PostgreSQL's."""
        assert self.arena.fake_clock is not None
        return self.arena.fake_clock

    def round(self) -> Iterator[float]:
        for offset in STEPS:
            self._step(offset)
            yield STEPPED_SECONDS
        self.rounds += 1

    def heal(self) -> None:
        if self.clock.steps and self.clock.steps[-1].offset:
            self._step(0.0)

    def bite(self, history: History, seconds: float) -> Bite:
        return Bite(
            number=self.number,
            what=f"leases that looked lapsed after {len(history.steps)} steps",
            counted=sum(_held_at(history, number) for number in range(len(history.steps))),
            wanted=1,
        )

    def _step(self, offset: float) -> None:
        was = self.clock.steps[-1].offset if self.clock.steps else 0.0
        before = self.arena.database.clock_offset()
        with self.faults.during(self.number, EVERYTHING, after=self.arena.plan.lease):
            self.clock.step(offset, lambda: int(self.arena.database.value("chaos/read_last_seq")))
        stepped = self.arena.database.clock_offset() - before
        self.stage.workload.shift(stepped)
        if abs(stepped - (offset - was)) > NEAR_SECONDS:
            raise NotAvailable(f"PostgreSQL's clock was to step by {offset - was:g} s, and stepped by {stepped:.3f} s")


def _held_at(history: History, number: int) -> int:
    """How many leases there were when the clock stepped forward; none where it stepped back."""
    step = history.steps[number]
    was = history.steps[number - 1].offset if number else 0.0
    if step.offset < was:
        return 0
    held = 0
    for versions in history.versions_of.values():
        before = [version for version in versions if version.at <= step.at]
        held += bool(before) and before[-1].state == "claimed"
    return held
