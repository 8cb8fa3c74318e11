"""Kills: a worker every so often, and now and then the leading coordinator together with it.

Invariants: SIGKILL, never a drain. The first worker is spared, so that one process sees the whole run. Every second
worker that was killed comes back at once, as a supervisor does it; the others come back when the rest has shared out
its slots. What ends by itself is a fault, and is started again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from loadtest.cluster.holdings import share_ring
from loadtest.cluster.own import OwnCluster
from loadtest.cluster.programs import Program

AWAY_SECONDS: Final = 20.0
"""At the latest a worker comes back after so long."""
COORDINATOR_AWAY_SECONDS: Final = 5.0
REVIVE_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.5


@dataclass(kw_only=True, slots=True)
class Kill:
    """`at` in seconds of the elapsed clock. `shared_after`: when those who live had the whole ring, None if a later
    kill came before. `began_again`: how many of its runs did; `first_after`, `last_after`: when."""

    name: str
    at: float
    at_once: bool
    shared_after: float | None = None
    began_again: int = 0
    first_after: float | None = None
    last_after: float | None = None


class Killer:
    """`every` and `coordinator_every` in seconds, 0: never. Instants are of the elapsed clock."""

    def __init__(
        self, cluster: OwnCluster, choose: random.Random, *, now: float, every: float, coordinator_every: float
    ) -> None:
        self.kills: list[Kill] = []
        self.coordinator_kills: list[float] = []
        self.ended: list[str] = []
        """What ended by itself."""
        self._cluster = cluster
        self._random = choose
        self._every = every
        self._coordinator_every = coordinator_every
        self._next = now + every
        self._next_coordinator = now + coordinator_every
        self._away: list[tuple[Program, float]] = []
        self._by_pid: dict[int, Kill] = {}
        self._watched: Kill | None = None
        self._looked = now

    def turn(self, now: float, *, killing: bool) -> None:
        """Kill what is to be killed by now if `killing`, start again what is to come back."""
        for program, back_at in list(self._away):
            if now >= back_at or not killing:
                program.start_again()
                self._away.remove((program, back_at))
        self._look(now)
        self._revive(now)
        if killing and self._every and now >= self._next:
            self._next = max(self._next + self._every, now)
            self._kill_worker(now)
            if self._coordinator_every and now >= self._next_coordinator:
                self._next_coordinator += self._coordinator_every
                self._kill_leader(now)

    def began_again(self, pid: int, at: float) -> None:
        """A run began again at that instant which the worker of that pid had begun; noted if it was killed."""
        kill = self._by_pid.get(pid)
        if kill is None:
            return
        kill.began_again += 1
        kill.first_after = at - kill.at if kill.first_after is None else kill.first_after
        kill.last_after = at - kill.at

    def _kill_worker(self, now: float) -> None:
        victims = [worker for worker in self._cluster.workers[1:] if worker.running]
        if not victims:
            return
        victim = self._random.choice(victims)
        victim.kill()
        self._watched = Kill(name=victim.name, at=now, at_once=len(self.kills) % 2 == 0)
        self._by_pid[victim.pid] = self._watched
        self.kills.append(self._watched)
        if self._watched.at_once:
            victim.start_again()
        else:
            self._away.append((victim, now + AWAY_SECONDS))

    def _kill_leader(self, now: float) -> None:
        leader: str = self._cluster.database.run("list_epochs", limit=1)[0][3]
        for coordinator in self._cluster.coordinators:
            if leader.startswith(coordinator.name) and coordinator.running:
                coordinator.kill()
                self.coordinator_kills.append(now)
                self._away.append((coordinator, now + COORDINATOR_AWAY_SECONDS))

    def _look(self, now: float) -> None:
        """Whether those who live share the whole ring since the last kill; who waits for that comes back."""
        if self._watched is None or now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        if not share_ring(
            self._cluster.holdings(), {worker.name for worker in self._cluster.workers if worker.running}
        ):
            return
        self._watched.shared_after = now - self._watched.at
        self._away = [
            (program, now if program.name == self._watched.name else back_at) for program, back_at in self._away
        ]
        self._watched = None

    def _revive(self, now: float) -> None:
        cluster = self._cluster
        away = [program for program, _ in self._away]
        for program in [*cluster.workers, *cluster.coordinators, *([] if cluster.api is None else [cluster.api])]:
            if not program.running and program not in away:
                code = program.process.returncode
                self.ended.append(f"{program.name} ended by itself (exit code {code}): {program.log_end()[-600:]}")
                self._away.append((program, now + REVIVE_SECONDS))
