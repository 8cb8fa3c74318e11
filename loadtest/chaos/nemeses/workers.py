"""Faults of workers: killed, stopped, drained."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import Bite, Nemesis, Stage
from loadtest.cluster.programs import Program

KILL_EVERY: Final = 5.0
DOWN_SECONDS: Final = 2.0
AWAKE_SECONDS: Final = 2.5
GONE_SECONDS: Final = 15.0
MISDEEDS: Final = (("spin", False), ("exit", False), ("spin", True), ("exit", True), ("fork", True), ("fork", False))
"""What a handler does to its process, and whether it is a plain function."""
MISDEED_SECONDS: Final = 8.0
FLOCKS: Final = 3
FLOCK: Final = 40
JOINED_SECONDS: Final = 12.0
STALE_EVENTS: Final = (b'"write refused: the lease is gone"', b'"renewal refused: the lease is gone"')


def busiest(nemesis: Nemesis) -> Program | None:
    """The running worker with the most runs in progress, or any: a fault is to hit something."""
    running = {name: worker for name, worker in nemesis.arena.workers.items() if worker.running}
    if not running:
        return None
    held = {row[0]: row[1] for row in nemesis.arena.asked("chaos/count_claimed")}
    names = sorted(running)
    nemesis.random.shuffle(names)
    best = max(names, key=lambda name: sum(count for owner, count in held.items() if owner.startswith(f"{name}.")))
    return running[best]


class Killing(Nemesis):
    """N1: kill -9 of a worker every 5 s; it is started again 2 s later."""

    number = "N1"
    title = "workers are killed (SIGKILL) and started again"
    part = "workers"

    def round(self) -> Iterator[float]:
        victim = busiest(self)
        if victim is not None:
            with self.faults.during(self.number, f"{victim.name}."):
                self.arena.down.add(victim.name)
                victim.kill()
                self.rounds += 1
                yield DOWN_SECONDS
                self.arena.restart(victim.name)
        yield KILL_EVERY - DOWN_SECONDS

    def heal(self) -> None:
        for name in sorted(self.arena.down & self.arena.workers.keys()):
            if not self.arena.workers[name].running:
                self.arena.restart(name)

    def bite(self, history: History, seconds: float) -> Bite:
        killed = [fault for fault in history.faults if fault.name == self.number]
        takeovers = sum(
            run.outcome == "lost"
            and any(run.worker.startswith(f.target) and run.claimed_at <= f.begin <= run.finished_at for f in killed)
            for run in history.runs
        )
        return Bite(
            number=self.number,
            what=f"runs of the {len(killed)} killed taken over",
            counted=takeovers,
            wanted=self.scaled(5, seconds),
        )


class Stopping(Nemesis):
    """N2: SIGSTOP of a worker with runs in progress for a lease and 2 s, then SIGCONT: it must find its leases gone."""

    number = "N2"
    title = "workers are stopped (SIGSTOP) for longer than their leases"
    part = "workers"

    def round(self) -> Iterator[float]:
        victim = busiest(self)
        if victim is not None:
            lease = self.arena.plan.lease
            # Until the woken worker has learnt of it: a renewal, and what the machine's load adds.
            with self.faults.during(self.number, f"{victim.name}.", after=lease):
                self.arena.down.add(victim.name)
                victim.pause()
                try:
                    yield lease + 2.0
                finally:
                    victim.resume()
                    self.arena.down.discard(victim.name)
                self.rounds += 1
        yield AWAKE_SECONDS

    def bite(self, history: History, seconds: float) -> Bite:
        stale = count_stale_in(self.arena.logs)
        return Bite(
            number=self.number,
            what=f"writes refused as stale after {self.rounds} stops",
            counted=stale,
            wanted=self.scaled(3, seconds),
        )


def count_stale_in(logs: Path) -> int:
    """Writes and renewals that the fence refused, as the workers' logs say."""
    texts = [log.read_bytes() for log in logs.glob("worker-*.log")]
    return sum(text.count(event) for text in texts for event in STALE_EVENTS)


class Rolling(Nemesis):
    """N18: a rolling restart, one worker every 3 s by SIGTERM; the next incarnation starts when the old one is gone."""

    number = "N18"
    title = "workers are restarted in good order, one after the other"
    part = "workers"
    pause = 3.0
    """Seconds between one that has come back and the next."""

    def round(self) -> Iterator[float]:
        for name in sorted(self.arena.workers):
            yield from self.replaced(name)

    def replaced(self, name: str, between: Callable[[], None] = lambda: None) -> Iterator[float]:
        """That program drains and comes back; `between` is done while it is gone."""
        with self.faults.during(self.number, f"{name}."):
            self.arena.down.add(name)
            program = self.program(name)
            if program.running:
                program.drain()
            waited = 0.0
            while program.running and waited < GONE_SECONDS:
                waited += 0.25
                yield 0.25
            if program.running:
                program.kill()
            between()
            self.arena.restart(name)
            self.rounds += 1
        yield self.pause

    def program(self, name: str) -> Program:
        return (self.arena.workers | self.arena.coordinators)[name]

    def heal(self) -> None:
        for name in sorted(self.arena.down & (self.arena.workers.keys() | self.arena.coordinators.keys())):
            program = self.program(name)
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.process.wait(GONE_SECONDS)  # it drains already, and a second SIGTERM would end that
            program.kill()
            self.arena.restart(name)


class Misbehaving(Nemesis):
    """N17: handlers that keep the interpreter's lock for three leases, end their process, or leave a child behind; as
    async and as plain functions. They bring down their workers, and must convict nobody else's jobs."""

    number = "N17"
    title = "handlers hold the lock, end their process, or fork"
    part = "handlers"

    def round(self) -> Iterator[float]:
        what, plain = MISDEEDS[self.rounds % len(MISDEEDS)]
        self.stage.workload.misbehave(what, 3 * self.arena.plan.lease, plain=plain)
        self.rounds += 1
        yield MISDEED_SECONDS

    def bite(self, history: History, seconds: float) -> Bite:
        lost = sum(run.outcome == "lost" for run in history.runs)
        return Bite(number=self.number, what=f"runs lost by {self.rounds} misdeeds", counted=lost, wanted=1)


class Flocking(Nemesis):
    """N19: members join in a mass, hold slots without claiming, and vanish by SIGKILL: their sessions time out."""

    number = "N19"
    title = f"{FLOCKS * FLOCK} members join at once, and vanish"
    part = "members"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._flocks: list[subprocess.Popen[bytes]] = []
        self._most = 0

    def round(self) -> Iterator[float]:
        with self.faults.during(self.number, "members", after=self.arena.plan.session):
            for number in range(FLOCKS):
                self._flocks.append(self.arena.start_members(f"flock-{number}", FLOCK))
            waited = 0.0
            while waited < JOINED_SECONDS:
                waited += 0.5
                yield 0.5
                self._most = max(self._most, len(self.stage.watcher.members))
            self.heal()
        self.rounds += 1
        yield JOINED_SECONDS

    def heal(self) -> None:
        for flock in self._flocks:
            flock.kill()
            flock.wait()
        self._flocks.clear()

    def bite(self, history: History, seconds: float) -> Bite:
        return Bite(
            number=self.number, what="members at the most", counted=self._most, wanted=len(self.arena.workers) + FLOCK
        )
