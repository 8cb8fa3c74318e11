"""One run of one contestant, measured.

All instants are Unix seconds of this machine's wall clock, which is the database's too: the server runs here.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from loadtest.compare.arena import Arena
from loadtest.compare.contestants import Broken, Contestant, Crew, Site, TooLate
from loadtest.compare.cpu import cpu_seconds
from loadtest.compare.started import Counts, Started, count_starts, judge, read_starts
from loadtest.compare.works import Work
from loadtest.database import Database
from loadtest.distributions import percentile
from loadtest.peers.protocol import Order
from ringcron.clock import SystemClock

LOOK_SECONDS: Final = 0.002
LEAD_SECONDS: Final = 6.0
"""Between the first job's creation and T, and more for many jobs and for statistics over much ballast."""
JOBS_A_SECOND: Final = 2_000.0
BALLAST_A_SECOND: Final = 300_000.0
PATIENCE: Final = (1.0, 3.0, 9.0)
"""That time, multiplied, of one try and the next."""
QUIET_SECONDS: Final = 1.0
"""How long before T everything must be in place."""
SETTLE_SECONDS: Final = 5.0
"""How long idle workers are left alone before they are watched."""
FAR_AHEAD_SECONDS: Final = 30 * 86400.0


@dataclass(kw_only=True, slots=True)
class Measured:
    """What a run gave. A figure that the run did not live to see is None, and the run is cut."""

    figures: dict[str, float | None]
    counts: Counts | None = None
    cut: bool = False
    details: dict[str, Any] = field(default_factory=dict)


def measure(work: Work, contestant: Contestant, arena: Arena, *, ballast: int) -> Measured:
    """Do the work once on a fresh database; again, with more time before T, where that was too short. Raises Broken."""
    for patience in PATIENCE[:-1]:
        with suppress(TooLate):
            return _measure_once(work, contestant, arena, ballast, patience)
    return _measure_once(work, contestant, arena, ballast, PATIENCE[-1])


def _measure_once(work: Work, contestant: Contestant, arena: Arena, ballast: int, patience: float) -> Measured:
    with arena.fresh(contestant, ballast) as url:
        site = Site(database_url=url, folder=arena.runs / _name_of(url), job_seconds=work.job_seconds)
        site.starts.mkdir(parents=True)
        crew = contestant.start(site, workers=work.workers, tasks=work.tasks)
        try:
            with Database(url) as database:
                run = _Run(work, contestant, arena, ballast, patience, site, crew, database)
                match work.way:
                    case "due together" | "due one by one":
                        return run.due()
                    case "enqueue":
                        return run.enqueue()
                    case "idle":
                        return run.idle()
                    case "kill":
                        return run.kill()
        finally:
            crew.close()


@dataclass(frozen=True, slots=True)
class _Run:
    work: Work
    contestant: Contestant
    arena: Arena
    ballast: int
    patience: float
    site: Site
    crew: Crew
    database: Database

    def due(self) -> Measured:
        order = self._create()
        pids = [worker.pid for worker in self.crew.workers]
        before = cpu_seconds(pids), cpu_seconds([self.arena.postgres_pid])
        last_due = order.at + (order.jobs - 1) * order.spacing
        _sleep_until(order.at)
        deadline = last_due + self.work.seconds
        self._until(lambda: count_starts(self.site.starts) >= order.jobs, deadline)
        recorded_at = self._until(lambda: self._left(order, 1) == 0, deadline)
        after = cpu_seconds(pids), cpu_seconds([self.arena.postgres_pid])
        self.crew.check()
        starts = read_starts(self.site.starts)
        counts = judge(order, starts, recorded=order.jobs - self._left(order, order.jobs))
        figures = burst_figures(order, starts, recorded_at)
        details = {
            "cpuSeconds": {"workers": _less(after[0], before[0]), "postgres": _less(after[1], before[1])},
            "delays": _thinned([start.at - order.at - start.seq * order.spacing for start in starts]),
        }
        return Measured(figures=figures, counts=counts, cut=recorded_at is None, details=details)

    def enqueue(self) -> Measured:
        order = Order(self.work.jobs, math.ceil(_now()) + FAR_AHEAD_SECONDS, 1.0)
        took = self.crew.enqueue(order)
        return Measured(figures={"per_second": order.jobs / took})

    def idle(self) -> Measured:
        time.sleep(SETTLE_SECONDS)
        pids = [worker.pid for worker in self.crew.workers]
        clock = SystemClock()
        began = clock.elapsed(), cpu_seconds(pids), cpu_seconds([self.arena.postgres_pid]), self._transactions()
        time.sleep(self.work.seconds)
        self.crew.check()
        ended = clock.elapsed(), cpu_seconds(pids), cpu_seconds([self.arena.postgres_pid]), self._transactions()
        seconds = ended[0] - began[0]
        workers, postgres = _less(ended[1], began[1]), _less(ended[2], began[2])
        return Measured(
            figures={
                "postgres_cpu": None if postgres is None else 100 * postgres / seconds,
                "workers_cpu": None if workers is None else 100 * workers / seconds,
                "transactions": (ended[3] - began[3]) / seconds / self.work.workers,
            }
        )

    def kill(self) -> Measured:
        order = self._create()
        _sleep_until(order.at)
        if self._until(lambda: count_starts(self.site.starts) >= order.jobs, order.at + self.work.seconds) is None:
            raise Broken("its jobs have not started")
        workers = self.crew.workers
        held = {worker.pid: {start.seq for start in read_starts(self.site.starts, worker.pid)} for worker in workers}
        victim = max(workers, key=lambda worker: len(held[worker.pid]))
        if not held[victim.pid]:
            raise Broken("no worker of it had jobs")
        victim.kill()
        killed_at = _now()

        def again() -> dict[int, float]:
            return {
                start.seq: start.at
                for start in read_starts(self.site.starts)
                if start.at > killed_at and start.seq in held[victim.pid]
            }

        ended_at = self._until(
            lambda: len(again()) == len(held[victim.pid]), killed_at + self.work.seconds, look_seconds=0.1
        )
        starts = sorted(again().values())
        return Measured(
            figures={
                "first_again": starts[0] - killed_at if starts else None,
                "again": starts[-1] - killed_at if ended_at is not None else None,
            },
            cut=ended_at is None,
            details={"held": len(held[victim.pid]), "startedAgain": len(starts)},
        )

    def _create(self) -> Order:
        """Have the jobs created and the statistics refreshed, in good time before the first is due."""
        lead = LEAD_SECONDS + self.work.jobs / JOBS_A_SECOND + self.ballast / BALLAST_A_SECOND
        order = Order(self.work.jobs, math.ceil(_now() + lead * self.patience), self.work.spacing)
        self.crew.enqueue(order)
        self.database.run("compare/analyze")
        self.crew.check()
        if _now() > order.at - QUIET_SECONDS:
            raise TooLate(f"the jobs were not in place {QUIET_SECONDS:g} s before T: the machine is too busy")
        return order

    def _left(self, order: Order, most: int) -> int:
        until = datetime.fromtimestamp(order.at + order.jobs * order.spacing, UTC)
        name = f"{self.contestant.queries}/left"
        return int(self.database.value(name, ballast=self.ballast, until=until, most=most))

    def _transactions(self) -> int:
        return int(self.database.value("compare/count_transactions"))

    def _until(
        self, condition: Callable[[], bool], deadline: float, *, look_seconds: float = LOOK_SECONDS
    ) -> float | None:
        """When the condition held, None where it did not before the deadline."""
        while not condition():
            if _now() > deadline:
                return None
            time.sleep(look_seconds)
        return _now()


def burst_figures(order: Order, starts: Sequence[Started], recorded_at: float | None) -> dict[str, float | None]:
    """The figures of jobs that came due, those that were not reached None. Rates of a cut run are of what it did."""
    delays = sorted(start.at - order.at - start.seq * order.spacing for start in starts)
    complete = len(delays) >= order.jobs
    first, last = (starts[0].at, starts[-1].at) if starts else (order.at, order.at)
    if recorded_at is not None:
        per_second: float | None = order.jobs / max(recorded_at - first, 1e-3)
    else:
        per_second = len(starts) / (last - first) if last > first else None
    return {
        "first_start": delays[0] if delays else None,
        "median_start": percentile(delays, 50) if complete else None,
        "p50": percentile(delays, 50) if complete else None,
        "p99": percentile(delays, 99) if complete else None,
        "last_start": delays[-1] if complete else None,
        "all_complete": None if recorded_at is None else recorded_at - order.at,
        "per_second": per_second,
    }


def _thinned(values: Sequence[float]) -> list[float]:
    """Every n-th of the sorted values, some 200 of them: enough to draw a curve."""
    ordered = sorted(values)
    return [round(value, 5) for value in ordered[:: max(1, len(ordered) // 200)]]


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _sleep_until(at: float) -> None:
    time.sleep(max(0.0, at - _now()))


def _now() -> float:
    return SystemClock().wall().timestamp()


def _name_of(url: str) -> str:
    return Path(url).name + f"_{os.getpid()}"
