"""Faults of coordinators: stopped while they lead, killed while they lead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import Bite, Nemesis, Stage
from loadtest.chaos.nemeses.workers import DOWN_SECONDS
from loadtest.cluster.programs import Program
from ringcron.failpoints import POINTS

COORDINATOR: Final = "coordinator"
BETWEEN_SECONDS: Final = 6.0
STARTING_SECONDS: Final = 3.0
ENDING_SECONDS: Final = 20.0


class CoordinatorNemesis(Nemesis):
    """What they have in common: who leads, and that another took over."""

    part = "coordinators"

    def leader(self) -> Program | None:
        """The running coordinator that leads, as far as ZooKeeper says."""
        if not self.stage.watcher.leaders:
            return None
        found = self.arena.coordinators.get(self.stage.watcher.leaders[0].rpartition(".")[0])
        return found if found is not None and found.running else None

    def heal(self) -> None:
        for name in sorted(self.arena.down & self.arena.coordinators.keys()):
            if not self.arena.coordinators[name].running:
                self.arena.restart(name)
            self.arena.down.discard(name)
        for name in sorted(self.arena.down & self.arena.workers.keys()):
            if not self.arena.workers[name].running:
                self.arena.restart(name)

    def bite(self, history: History, seconds: float) -> Bite:
        terms = {assigned.term for assigned in history.assignments}
        return Bite(
            number=self.number,
            what=f"leaders published after {self.rounds} faults",
            counted=len(terms),
            wanted=2,
        )


class KillingLeader(CoordinatorNemesis):
    """N4: a leader ends at a step of a rebalance: it has read everything; it has decided, not written; it has written.
    The one that is to end there takes over from a leader that is killed, together with a worker."""

    number = "N4"
    title = "leading coordinators end at each step of a rebalance"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._ended = 0

    def round(self) -> Iterator[float]:
        leader = self.leader()
        other = next((one for one in self.arena.coordinators.values() if one is not leader and one.running), None)
        if leader is None or other is None:
            yield 1.0
            return
        point = POINTS[self.rounds % len(POINTS)]
        with self.faults.during(self.number, COORDINATOR):
            self.arena.down |= {leader.name, other.name}
            other.kill()
            self.arena.restart(other.name, failpoints=point)
            self.arena.down.add(other.name)
            yield STARTING_SECONDS
            leader.kill()
            worker = self.arena.workers[self.random.choice(sorted(self.arena.workers))]
            with self.faults.during(self.number, f"{worker.name}."):
                self.arena.down.add(worker.name)
                worker.kill()
                yield DOWN_SECONDS
                self.arena.restart(worker.name)
            heir = self.arena.coordinators[other.name]
            waited = 0.0
            while heir.running and waited < ENDING_SECONDS:
                waited += 0.25
                yield 0.25
            self._ended += not heir.running
            self.rounds += 1
            self.heal()
        yield BETWEEN_SECONDS

    def heal(self) -> None:
        for name in sorted(self.arena.down & self.arena.coordinators.keys()):
            if self.arena.coordinators[name].running:
                self.arena.coordinators[name].kill()
            self.arena.restart(name)
        super().heal()

    def bite(self, history: History, seconds: float) -> Bite:
        return Bite(
            number=self.number,
            what=f"leaders ended at a step of a rebalance, in {self.rounds} rounds",
            counted=self._ended,
            wanted=1,
        )


class StoppingLeader(CoordinatorNemesis):
    """N3: the leader is stopped for three session timeouts; meanwhile a worker is killed, so that there is something
    to publish."""

    number = "N3"
    title = "the leading coordinator is stopped (SIGSTOP) for three sessions"

    def round(self) -> Iterator[float]:
        victim = self.leader()
        if victim is not None:
            self.arena.down.add(victim.name)
            with self.faults.during(self.number, COORDINATOR):
                victim.pause()
                try:
                    worker = self.arena.workers[self.random.choice(sorted(self.arena.workers))]
                    with self.faults.during(self.number, f"{worker.name}."):
                        self.arena.down.add(worker.name)
                        worker.kill()
                        yield DOWN_SECONDS
                        self.arena.restart(worker.name)
                    yield 3 * self.arena.plan.session
                finally:
                    victim.resume()
                    self.arena.down.discard(victim.name)
                self.rounds += 1
        yield BETWEEN_SECONDS
