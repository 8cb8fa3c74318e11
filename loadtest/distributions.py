"""Many measurements as a few numbers and a curve. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

POINTS: Final = 400
"""A curve is drawn from so many points at most: more cannot be seen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """Of `count` values, in their own unit."""

    count: int
    least: float
    p50: float
    p90: float
    p99: float
    greatest: float
    mean: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution:
        """Percentiles are by nearest rank. Raises ValueError where there are no values."""
        if not values:
            raise ValueError("no values")
        ordered = sorted(values)
        return cls(
            count=len(ordered),
            least=ordered[0],
            p50=percentile(ordered, 50),
            p90=percentile(ordered, 90),
            p99=percentile(ordered, 99),
            greatest=ordered[-1],
            mean=sum(ordered) / len(ordered),
        )

    def document(self) -> dict[str, float]:
        """For the record."""
        return asdict(self)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value of `ordered` that `percent` of them do not exceed, by nearest rank."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def cumulative(instants: Sequence[float], origin: float) -> list[tuple[float, float]]:
    """How many of `instants` had passed by when: (seconds after origin, count), from (0, 0) on, thinned to POINTS."""
    ordered = sorted(instants)
    step = max(1, len(ordered) // POINTS)
    points = [(0.0, 0.0)]
    points += [(ordered[index] - origin, index + 1.0) for index in range(0, len(ordered), step)]
    if ordered and (len(ordered) - 1) % step:
        points.append((ordered[-1] - origin, float(len(ordered))))
    return points


def rates(instants: Sequence[float], origin: float, *, until: float, width: float) -> list[tuple[float, float]]:
    """How many per second in each interval of `width` seconds: (its middle, in seconds after origin, count / width)."""
    count = max(1, math.ceil((until - origin) / width))
    bins = [0] * count
    for instant in instants:
        index = int((instant - origin) / width)
        if 0 <= index < count:
            bins[index] += 1
    return [((index + 0.5) * width, found / width) for index, found in enumerate(bins)]


def bin_width(seconds: float) -> float:
    """A round interval that cuts `seconds` into some 40 to 100 parts; never below 5 ms."""
    for width in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0):
        if seconds / width <= 100:
            return width
    return 30.0
