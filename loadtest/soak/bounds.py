"""What "about zero" means: for each line of a soak, the growth per hour that is as good as none, and why. Pure.

Invariant: a bound follows from what the smallest leak worth the name would cost at this rate of runs or kills, not from
what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loadtest.outcome import Point
from loadtest.soak.lines import Lines
from loadtest.soak.sampling import MIB, SPARED
from loadtest.soak.slopes import HOUR, Slope, Verdict, slope_of

OBJECT_BYTES: Final = 32
"""Less than the smallest thing that a program could keep of a run."""
ALLOCATOR_MIB: Final = 4.0
"""An hour of what an allocator does by itself to a process of tens of MiB; half an hour cannot tell less apart."""
LEAKY_KILLS: Final = 0.1
LEFT_SHARE: Final = 0.05
ENTRY_BYTES: Final = 72
"""An entry of jobs_due and one of jobs_claimed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """`line` is the measure in the samples."""

    name: str
    line: str
    unit: str
    per_hour: float
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A bound, what was measured, and the verdict. `slope` None: too few samples."""

    bound: Bound
    slope: Slope | None

    @property
    def verdict(self) -> Verdict:
        return "undecided" if self.slope is None else self.slope.judged(self.bound.per_hour)


def bounds_of(*, due_per_second: float, created_per_second: float, workers: int, kills_per_hour: float) -> list[Bound]:
    """The bounds of a soak at that rate."""
    runs = due_per_second * HOUR
    # What follows is 32 bytes for each run or job that a process has to do with.
    of_runs = max(ALLOCATOR_MIB, runs * OBJECT_BYTES / MIB)
    of_one = max(ALLOCATOR_MIB, runs / workers * OBJECT_BYTES / MIB)
    of_jobs = max(ALLOCATOR_MIB, created_per_second * HOUR * OBJECT_BYTES / MIB)
    of_kills = max(1.0, kills_per_hour * LEAKY_KILLS)
    each_run = f"{OBJECT_BYTES} bytes kept of each run"
    tenth = "one leaked at every tenth kill, 1 at least"
    noise = "what an allocator does by itself"
    rows = f"one row that nobody clears away in {1 / LEFT_SHARE:.0f} runs"
    return [
        Bound(
            name="memory of the spared worker",
            line=f"allocated by {SPARED}",
            unit="MiB",
            per_hour=of_one,
            why=f"{each_run} of its own",
        ),
        Bound(
            name="memory of the API",
            line="allocated by API",
            unit="MiB",
            per_hour=of_jobs,
            why=f"{OBJECT_BYTES} bytes kept of each job created",
        ),
        Bound(
            name="memory of a coordinator",
            line="allocated by one of coordinators",
            unit="MiB",
            per_hour=ALLOCATOR_MIB,
            why=noise,
        ),
        Bound(
            name="memory of PostgreSQL",
            line="allocated by PostgreSQL",
            unit="MiB",
            per_hour=of_runs,
            why=each_run,
        ),
        Bound(name="connections", line="connections", unit="", per_hour=of_kills, why=tenth),
        *(
            Bound(name=f"{what} of {kind}", line=f"{what} of {line}", unit="", per_hour=of_kills, why=tenth)
            for what in ("threads", "files")
            for kind, line in ((SPARED, SPARED), ("a coordinator", "coordinators"), ("the API", "API"))
        ),
        Bound(name="dead rows", line="dead rows", unit="rows", per_hour=runs * LEFT_SHARE, why=rows),
        Bound(
            name="indexes that a run enters and leaves",
            line="size of waiting indexes",
            unit="MiB",
            per_hour=runs * LEFT_SHARE * ENTRY_BYTES / MIB,
            why=f"{rows}, with {ENTRY_BYTES} bytes of entries",
        ),
    ]


def judge(bounds: list[Bound], lines: Lines, *, since: float) -> list[Judged]:
    """Hold the lines, from `since` on (seconds), against the bounds."""

    def points(bound: Bound) -> list[Point]:
        return lines.points(bound.line, since=since)

    return [Judged(bound=bound, slope=slope_of(points(bound))) for bound in bounds]
