"""How fast does a line grow, and is that about zero? Pure.

Invariant: what is uncertain is said to be. The slope is Theil and Sen's: the median over all pairs of windows, which a
spike or a saw's tooth does not bend; its range is Sen's, of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from loadtest.distributions import median
from loadtest.outcome import Point

Verdict = Literal["about zero", "grows", "undecided"]

WINDOWS: Final = 30
"""A line is cut into so many windows. Samples next to each other are not independent; means of windows nearly are."""
LEAST_WINDOW_SECONDS: Final = 10.0
LEAST_SECONDS: Final = 600.0
"""Less decides nothing: what autovacuum does comes once a minute, and takes some rounds to become level."""
HOUR: Final = 3600.0
_Z: Final = 1.96


@dataclass(frozen=True, kw_only=True, slots=True)
class Slope:
    """Growth per hour, in the unit of the line; `low` to `high` is its range of 95 %."""

    per_hour: float
    low: float
    high: float
    seconds: float
    """How long the line is."""

    def judged(self, bound: float) -> Verdict:
        """`bound`: growth per hour that is as good as none. Only what is surely beyond it grows; shrinking is fine."""
        if self.seconds < LEAST_SECONDS:
            return "undecided"
        if self.high <= bound:
            return "about zero"
        return "grows" if self.low > bound else "undecided"


def windows_of(points: Sequence[Point]) -> list[Point]:
    """Mean instant and mean value of each of some thirty windows. `points`: seconds and value, in order of time."""
    if not points:
        return []
    begin, end = points[0][0], points[-1][0]
    width = max(LEAST_WINDOW_SECONDS, (end - begin) / WINDOWS)
    held: dict[int, list[Point]] = {}
    for point in points:
        held.setdefault(min(int((point[0] - begin) / width), WINDOWS - 1), []).append(point)
    return [
        (sum(at for at, _ in window) / len(window), sum(value for _, value in window) / len(window))
        for window in held.values()
    ]


def slope_of(points: Sequence[Point]) -> Slope | None:
    """Of a line of seconds and values; None where it has fewer than three windows."""
    means = windows_of(points)
    count = len(means)
    if count < 3:
        return None
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) * HOUR for a, b in combinations(means, 2))
    spread = _Z * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, round((len(slopes) - spread) / 2) - 1)
    high = min(len(slopes) - 1, round((len(slopes) + spread) / 2))
    return Slope(per_hour=median(slopes), low=slopes[low], high=slopes[high], seconds=points[-1][0] - points[0][0])
