"""Faults of the network between ringcron and its servers, made by the proxy that all connections then go through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import EVERYTHING, Bite, Nemesis
from loadtest.chaos.steering import Steering

CUT: Final = 0.02
DELAY_SHARE: Final = 0.05
DELAY_SECONDS: Final = 0.5
CUTTING_SECONDS: Final = 10.0
BETWEEN_SECONDS: Final = 6.0
LEASES_CUT: Final = 3


class NetworkNemesis(Nemesis):
    """What they have in common: the proxy."""

    part = "network"
    proxied: ClassVar[bool] = True

    @property
    def steering(self) -> Steering:
        assert self.arena.steering is not None
        return self.arena.steering

    def heal(self) -> None:
        self.steering.tell(up=True, down=True, cut_before=0.0, cut_after=0.0, delay_share=0.0)


class Cutting(NetworkNemesis):
    """N9: each commit has a chance of 2 % that its connection is cut before it reaches the server, and the same that it
    is cut after the server has committed; one in twenty is delayed by up to 0.5 s."""

    number = "N9"
    title = "connections are cut just before and just after commits, and delayed"

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


class Partition(NetworkNemesis):
    """A worker is cut off from a server for three leases: nothing is refused, nothing arrives."""

    route: ClassVar[str]

    def round(self) -> Iterator[float]:
        worker = self.random.choice(sorted(self.arena.workers))
        with self.faults.during(self.number, self.target(worker), after=self.arena.plan.lease):
            self.steering.tell(routes=f"{worker}/{self.route}", **self.cut())
            try:
                yield LEASES_CUT * self.arena.plan.lease
            finally:
                self.heal()
        self.rounds += 1
        yield BETWEEN_SECONDS

    def target(self, worker: str) -> str:
        """Whom the checker is to excuse."""
        return f"{worker}."

    def cut(self) -> dict[str, bool]:
        """Which directions are closed."""
        return {"up": False, "down": False}


class FromZooKeeper(Partition):
    """N12: a worker is cut off from ZooKeeper. That excuses nothing."""

    number = "N12"
    title = "a worker is cut off from ZooKeeper"
    route = "zookeeper"

    def target(self, worker: str) -> str:
        return f"zookeeper of {worker}"


class FromPostgres(Partition):
    """N13: a worker is cut off from PostgreSQL."""

    number = "N13"
    title = "a worker is cut off from PostgreSQL"
    route = "postgres"


class OneWay(Partition):
    """N14: what a worker says to PostgreSQL arrives, and no answer comes back; then the other way round."""

    number = "N14"
    title = "a worker is cut off from PostgreSQL in one direction"
    route = "postgres"

    def cut(self) -> dict[str, bool]:
        return {"down": False} if self.rounds % 2 == 0 else {"up": False}
