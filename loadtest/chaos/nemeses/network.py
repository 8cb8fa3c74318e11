"""Faults of the network between ringcron and its servers: made by the proxy that connections then go through; a cut by
the rules of the worker's network namespace, where it has one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import EVERYTHING, Bite, Nemesis, Stage
from loadtest.chaos.steering import Steering

CUT: Final = 0.02
DELAY_SHARE: Final = 0.05
DELAY_SECONDS: Final = 0.5
CUTTING_SECONDS: Final = 10.0
BETWEEN_SECONDS: Final = 6.0
LEASES_CUT: Final = 3


class Cutting(Nemesis):
    """N9: each commit has a chance of 2 % that its connection is cut before it reaches the server, and the same that it
    is cut after the server has committed; one in twenty is delayed by up to 0.5 s."""

    number = "N9"
    title = "connections are cut just before and just after commits, and delayed"
    part = "network"
    proxied = True

    @property
    def steering(self) -> Steering:
        assert self.arena.wiring.steering is not None
        return self.arena.wiring.steering

    def heal(self) -> None:
        self.steering.tell(cut_before=0.0, cut_after=0.0, delay_share=0.0)

    def round(self) -> Iterator[float]:
        with self.faults.during(self.number, EVERYTHING, after=self.arena.plan.lease):
            self.steering.tell(cut_before=CUT, cut_after=CUT, delay_share=DELAY_SHARE, delay_seconds=DELAY_SECONDS)
            try:
                yield CUTTING_SECONDS
            finally:
                self.heal()
        self.rounds += 1

    def bite(self, history: History, seconds: float) -> Bite:
        counts = self.arena.proxy_counts
        before, after = counts.get("cut before", 0), counts.get("cut after", 0)
        return Bite(
            number=self.number,
            what=f"commits cut ({before} before, {after} after) of {counts.get('commits', 0)}",
            counted=before + after,
            wanted=self.scaled(20, seconds),
        )


class Partition(Nemesis):
    """A worker is cut off from a server for three leases: nothing is refused, nothing arrives."""

    part = "network"
    separates = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._dropped = 0

    def heal(self) -> None:
        before = self.arena.wiring.dropped
        self.arena.wiring.heal()
        self._dropped += self.arena.wiring.dropped - before

    def bite(self, history: History, seconds: float) -> Bite:
        if self.arena.wiring.namespaces is None:
            return super().bite(history, seconds)
        return Bite(
            number=self.number,
            what=f"packets dropped in {self.rounds} rounds",
            counted=self._dropped,
            wanted=self.scaled(10, seconds),
        )

    def round(self) -> Iterator[float]:
        worker = self.random.choice(sorted(self.arena.workers))
        with self.faults.during(self.number, self.target(worker), after=self.arena.plan.lease):
            self.arena.wiring.cut(worker, self.server, **self.passes())
            try:
                yield LEASES_CUT * self.arena.plan.lease
            finally:
                self.heal()
        self.rounds += 1
        yield BETWEEN_SECONDS

    @property
    def server(self) -> str:
        """From which: `postgres` or `zookeeper`."""
        raise NotImplementedError

    def target(self, worker: str) -> str:
        """Whom the checker is to excuse. To be cut off from ZooKeeper excuses nobody."""
        return f"{worker}." if self.server == "postgres" else f"zookeeper of {worker}"

    def passes(self) -> dict[str, bool]:
        """Which directions are open: from the worker, to it."""
        return {"up": False, "down": False}


class FromZooKeeper(Partition):
    """N12: a worker is cut off from ZooKeeper. That excuses nothing."""

    number = "N12"
    title = "a worker is cut off from ZooKeeper"

    @property
    def server(self) -> str:
        return "zookeeper"


class FromPostgres(Partition):
    """N13: a worker is cut off from PostgreSQL."""

    number = "N13"
    title = "a worker is cut off from PostgreSQL"

    @property
    def server(self) -> str:
        return "postgres"


class OneWay(Partition):
    """N14: what a worker says to PostgreSQL arrives, and no answer comes back; then the other way round; then the same
    with ZooKeeper, which excuses nothing."""

    number = "N14"
    title = "a worker is cut off from PostgreSQL, or from ZooKeeper, in one direction"

    @property
    def server(self) -> str:
        return "postgres" if self.rounds % 4 < 2 else "zookeeper"

    def passes(self) -> dict[str, bool]:
        return {"up": self.rounds % 2 == 0, "down": self.rounds % 2 == 1}
