"""The rows of the comparison: what work, how much of it, what is measured, and what the goal is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Way = Literal["due together", "due one by one", "enqueue", "idle", "kill"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One measured figure. `less`: less is better."""

    key: str
    name: str
    unit: str
    less: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """What ringcron is to reach in `measure`.

    `against` is a contestant's name, `limit`, `peers` (each of them) or `python` (each Python peer): then the bound is
    on ringcron's figure divided by theirs. None: on ringcron's own figure.
    """

    measure: str
    against: str | None
    at_most: float | None = None
    at_least: float | None = None

    def reached(self, value: float) -> bool:
        return (self.at_most is None or value <= self.at_most) and (self.at_least is None or value >= self.at_least)

    @property
    def text(self) -> str:
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One row."""

    name: str
    title: str
    way: Way
    workers: int
    jobs: int
    ballast: int
    """Far-future jobs beside it, unless told otherwise."""
    measures: tuple[Measure, ...]
    goals: tuple[Goal, ...] = ()
    seconds: float = 60.0
    """After so long a run is cut; for `idle`, how long it is watched."""
    spacing: float = 0.0
    job_seconds: float = 0.0
    tasks: bool = False
    """The limit makes a task for each job."""
    limit: bool = True
    """Whether the limit takes part."""


_STARTED: Final = Measure(key="last_start", name="last start after T", unit="s")
_COMPLETE: Final = Measure(key="all_complete", name="all recorded complete after T", unit="s")
_MIDDLE: Final = Measure(key="median_start", name="median start after T", unit="s")
_RATE: Final = Measure(key="per_second", name="first start to last recorded completion", unit="jobs/s", less=False)

WORKS: Final = (
    Work(
        name="spike",
        title="Spike: 2,000 jobs due in one second among far-future ones, 4 workers",
        way="due together",
        workers=4,
        jobs=2_000,
        ballast=1_000_000,
        measures=(_STARTED, _COMPLETE, _MIDDLE),
        goals=(
            Goal(measure="last_start", against="limit", at_most=1.5),
            Goal(measure="last_start", against="peers", at_most=1.0),
            Goal(measure="all_complete", against="limit", at_most=1.5),
            Goal(measure="all_complete", against="peers", at_most=1.0),
            Goal(measure="all_complete", against="python", at_most=0.3),
        ),
    ),
    Work(
        name="drain",
        title="Drain: 20,000 due jobs, 4 workers",
        way="due together",
        workers=4,
        jobs=20_000,
        ballast=0,
        measures=(_RATE,),
        goals=(
            Goal(measure="per_second", against="limit", at_least=0.6),
            Goal(measure="per_second", against="python", at_least=1.5),
            Goal(measure="per_second", against="graphile-worker", at_least=1.0),
        ),
    ),
    Work(
        name="drain1",
        title="Drain: 20,000 due jobs, 1 worker process",
        way="due together",
        workers=1,
        jobs=20_000,
        ballast=0,
        tasks=True,
        measures=(_RATE,),
        goals=(
            Goal(measure="per_second", against="limit", at_least=0.7),
            Goal(measure="per_second", against="python", at_least=1.0),
        ),
    ),
    Work(
        name="enqueue",
        title="Create: 20,000 scheduled jobs by the bulk call, one client",
        way="enqueue",
        workers=0,
        jobs=20_000,
        ballast=0,
        measures=(Measure(key="per_second", name="created", unit="jobs/s", less=False),),
        goals=(Goal(measure="per_second", against=None, at_least=20_000),),
    ),
    Work(
        name="precision",
        title="Precision: 100 lone jobs over 20 s among far-future ones, 1 worker",
        way="due one by one",
        workers=1,
        jobs=100,
        ballast=1_000_000,
        spacing=0.2,
        measures=(
            Measure(key="p50", name="start delay, p50", unit="s"),
            Measure(key="p99", name="start delay, p99", unit="s"),
        ),
        goals=(Goal(measure="p99", against=None, at_most=0.020),),
    ),
    Work(
        name="idle",
        title="Idle: 20 workers, nothing due, 100,000 far-future jobs",
        way="idle",
        workers=20,
        jobs=0,
        ballast=100_000,
        seconds=20.0,
        limit=False,
        measures=(
            Measure(key="postgres_cpu", name="PostgreSQL, of one core", unit="%"),
            Measure(key="workers_cpu", name="workers, of one core", unit="%"),
            Measure(key="transactions", name="transactions a worker", unit="/s"),
        ),
        goals=(
            Goal(measure="postgres_cpu", against="pgqueuer", at_most=1.0),
            Goal(measure="transactions", against=None, at_most=1.0),
        ),
    ),
    Work(
        name="recover",
        title="Recover: kill -9 one of two workers, its 10 jobs of 120 s run again",
        way="kill",
        workers=2,
        jobs=20,
        ballast=0,
        seconds=60.0,
        job_seconds=120.0,
        limit=False,
        measures=(
            Measure(key="first_again", name="first of its jobs starts again after", unit="s"),
            Measure(key="again", name="last of its jobs starts again after", unit="s"),
        ),
        goals=(
            Goal(measure="again", against=None, at_most=16.0),
            Goal(measure="again", against="peers", at_most=1.0),
        ),
    ),
)


def work_named(name: str) -> Work:
    """Raises KeyError."""
    return {work.name: work for work in WORKS}[name]
