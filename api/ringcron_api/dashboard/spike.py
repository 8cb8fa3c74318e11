"""When a spike clears, and what would make it clear sooner. Pure.

The model: the pool is a queue with `capacity` places, a run takes its mean duration, jobs wait their turn. The mean
comes from the last ten minutes by Little's law (runs in progress over starts a second), so that it needs no look at
single runs, and a run that is still going counts. Each job is counted once, at its next run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ringcron.store.snapshot import Pace, Snapshot

TARGET_SECONDS: Final = 30.0
"""How late the last job of a spike may start before more workers are suggested."""
MEASURED_STARTS: Final = 5
"""Fewer starts than this say nothing about how long a run takes."""
MOST_WORKERS: Final = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """The busiest stretch ahead: `due` jobs at `in_seconds`, of which the last starts `late_seconds` late."""

    in_seconds: int
    due: int
    late_seconds: float
    clears_in_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What is to come. Lengths are None where nobody knows how long a run takes, or there is no place to run in.

    `clears_in_seconds`: until what is due now has started. `workers_for_target`: how many workers, each of the present
    mean capacity, would start all of the peak within TARGET_SECONDS.
    """

    mean_seconds: float | None
    starts_per_second: float | None
    """What the pool can do, all places busy."""
    backlog: int
    clears_in_seconds: float | None
    peak: Peak | None
    busiest: tuple[tuple[int, int], ...]
    """(in_seconds, due) of the ten busiest seconds ahead."""
    workers: int
    capacity: int
    workers_for_target: int | None


def outlook_of(ahead: Mapping[int, int], snapshot: Snapshot, *, capacities: Sequence[int]) -> Outlook:
    """`ahead`: jobs by the second from now that they become due in. `capacities`: of the workers that claim."""
    capacity = sum(capacities)
    mean_seconds = mean_run_seconds(snapshot.pace)
    rate = None if mean_seconds is None or capacity == 0 else capacity / mean_seconds
    backlog = snapshot.due
    peak = None
    wanted = None
    if rate is not None:
        peak = peak_of(ahead, backlog, rate)
        if peak is not None:
            each = rate / len(capacities)
            wanted = workers_for(ahead, backlog, each, TARGET_SECONDS)
    return Outlook(
        mean_seconds=mean_seconds,
        starts_per_second=rate,
        backlog=backlog,
        clears_in_seconds=None if rate is None else backlog / rate,
        peak=peak,
        busiest=tuple(sorted(ahead.items(), key=lambda second: (-second[1], second[0]))[:10]),
        workers=len(capacities),
        capacity=capacity,
        workers_for_target=wanted,
    )


def mean_run_seconds(pace: Pace) -> float | None:
    """How long a run takes, from the seconds of which both starts and runs in progress are known."""
    seen = [(running, began) for running, began in zip(pace.running, pace.started, strict=True) if running is not None]
    started = sum(began for _, began in seen)
    if started < MEASURED_STARTS:
        return None
    # Runs shorter than the distance of two looks are seen in progress too rarely to count as zero.
    return max(sum(running for running, _ in seen) / started, 0.01)


def peak_of(ahead: Mapping[int, int], backlog: int, rate: float) -> Peak | None:
    """The moment from which a job waits longest, when the pool starts `rate` jobs a second."""
    worst: Peak | None = None
    waiting, last = float(backlog), 0
    for second in sorted(ahead):
        waiting = max(0.0, waiting - rate * (second - last)) + ahead[second]
        last = second
        late_seconds = waiting / rate
        if worst is None or late_seconds > worst.late_seconds:
            worst = Peak(
                in_seconds=second,
                due=ahead[second],
                late_seconds=late_seconds,
                clears_in_seconds=second + late_seconds,
            )
    return worst


def workers_for(ahead: Mapping[int, int], backlog: int, rate_each: float, late_seconds: float) -> int | None:
    """The fewest workers with which no job ahead starts later than `late_seconds`; None: more than MOST_WORKERS."""

    def enough(workers: int) -> bool:
        peak = peak_of(ahead, backlog, workers * rate_each)
        return peak is None or peak.late_seconds <= late_seconds

    if not enough(MOST_WORKERS):
        return None
    low, high = 1, MOST_WORKERS
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def scale_top(values: Sequence[float]) -> int:
    """A round number at or above all of them: the top of a chart."""
    top = max(values, default=0.0)
    if top <= 4:
        return 4
    power: int = 10 ** math.floor(math.log10(top))
    return next(step * power // 2 for step in (2, 4, 10, 20) if step * power / 2 >= top)
