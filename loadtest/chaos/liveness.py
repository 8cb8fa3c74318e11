"""V1 to V6: after the last fault everything that waits is run, and the cluster is what it was before.

    V1  every job ends (each recurring one has an end), within the bound     V4  who is registered is alive, and all are
    V2  no lease stays lapsed                                                V5  every worker does work
    V3  every slot is owned, at one epoch; there is one leader               V6  connections and threads are as before

Invariant: what is judged is the live database and the live processes. Bounds are three times what is promised, and a
floor for machines that are busy with something else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from loadtest.chaos.arena import Arena
from loadtest.chaos.watcher import Watcher
from loadtest.chaos.workload import Workload
from loadtest.progress import Progress
from ringcron.clock import SystemClock

GENEROSITY: Final = 3
FLOOR_SECONDS: Final = 60.0
LONGEST_RUN: Final = 24.0
PROBES: Final = 100
PROBE_NAME: Final = "probe"
PROBE_ROUNDS: Final = 4
SPARE: Final = 2
"""By how many connections and threads per process it may differ."""
LOOK_SECONDS: Final = 0.25


class Liveness:
    """Judges one run. `remember` is called before the first fault, `settle` after the last one was healed."""

    def __init__(self, arena: Arena, watcher: Watcher, workload: Workload) -> None:
        self._arena = arena
        self._watcher = watcher
        self._workload = workload
        self._clock = SystemClock()
        self._connections = 0
        self._threads = 0

    def remember(self) -> None:
        """What there is before the first fault."""
        self._connections = self._count_connections()
        self._threads = self._most_threads()

    def settle(self, progress: Progress) -> list[str]:
        """Wait for each, then say what did not come true."""
        plan = self._arena.plan
        backlog = sum(row[1] for row in self._live())
        places = plan.workers * plan.concurrency
        promised = plan.session + plan.lease + 2 * plan.poll + math.ceil(backlog / places) + LONGEST_RUN
        bound = max(FLOOR_SECONDS, GENEROSITY * promised)
        checks: list[tuple[Callable[[], bool], Callable[[], str]]] = [
            (lambda: not self._live(), lambda: f"V1, V2: after {bound:.0f} s there is still {self._told_live()}"),
            (
                self._arena.is_shared_out,
                lambda: f"V3: the workers do not own the ring: {self._arena.holdings()}",
            ),
            (
                lambda: (
                    self._watcher.last is not None and not self._watcher.last.unowned() and bool(self._watcher.leaders)
                ),
                lambda: f"V3: unowned slots, or no leader: leaders {self._watcher.leaders}",
            ),
            (self._registered_is_alive, lambda: f"V4: registered are {sorted(self._watcher.members)}"),
        ]
        found = [said() for holds, said in checks if not self._until(holds, bound)]
        progress.say("every worker is to do some work")
        idle = self._probe(bound)
        if idle:
            found.append(f"V5: no work is done by {', '.join(sorted(idle))}")
        progress.say("connections and threads are to be as before")
        if not self._until(lambda: self._count_connections() <= self._connections + SPARE, bound):
            found.append(f"V6: {self._count_connections()} connections, {self._connections} before the first fault")
        if not self._until(lambda: self._most_threads() <= self._threads + SPARE, bound):
            found.append(f"V6: a worker has {self._most_threads()} threads, {self._threads} before the first fault")
        return found

    def _until(self, holds: Callable[[], bool], seconds: float) -> bool:
        deadline = self._clock.elapsed() + seconds
        while not holds():
            if self._clock.elapsed() > deadline:
                return False
            self._arena.revive()
            time.sleep(LOOK_SECONDS)
        return True

    def _live(self) -> list[tuple[str, int, float, float | None]]:
        """What is still to be run, by state. The database must answer here: it is healed."""
        return self._arena.database.run("chaos/list_live")

    def _told_live(self) -> str:
        return "; ".join(
            f"{count} {state}, the oldest since {since:.1f} s" + ("" if lapsed is None else f", lapsed {lapsed:.1f} s")
            for state, count, since, lapsed in self._live()
        )

    def _registered_is_alive(self) -> bool:
        names = sorted(member.rpartition(".")[0] for member in self._watcher.members)
        return names == sorted(self._arena.workers)

    def _probe(self, bound: float) -> set[str]:
        """Put jobs on the whole ring, a few times if need be; the workers that have run none of them."""
        idle = set(self._arena.workers)
        for number in range(PROBE_ROUNDS):
            self._workload.probe(f"{PROBE_NAME}-{number}", PROBES)
            self._until(lambda: not self._live(), bound)
            done = self._arena.database.run("chaos/count_ended_by", pattern=f"{PROBE_NAME}-%")
            idle = set(self._arena.workers) - {row[0].rpartition(".")[0] for row in done}
            if not idle:
                break
        return idle

    def _count_connections(self) -> int:
        return int(self._arena.database.value("chaos/count_connections"))

    def _most_threads(self) -> int:
        return max(_threads(worker.pid) for worker in self._arena.workers.values())


def _threads(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:")), 0)
