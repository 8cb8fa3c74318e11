"""Faults of coordinators: stopped while they lead, killed while they lead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import Bite, Nemesis
from loadtest.chaos.nemeses.workers import DOWN_SECONDS
from loadtest.cluster.programs import Program

COORDINATOR: Final = "coordinator"
BETWEEN_SECONDS: Final = 6.0


class CoordinatorNemesis(Nemesis):
    """What they have in common: who leads, and that another took over."""

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

    def bite(self, history: History, seconds: float) -> Bite:
        terms = {assigned.term for assigned in history.assignments}
        return Bite(
            number=self.number,
            what=f"leaders published after {self.rounds} faults",
            counted=len(terms),
            wanted=2,
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

    def heal(self) -> None:
        super().heal()
        for name in sorted(self.arena.down & self.arena.workers.keys()):
            if not self.arena.workers[name].running:
                self.arena.restart(name)
