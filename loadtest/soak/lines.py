"""What was sampled over time, in so many points however long it goes on. Pure.

Invariant: a line holds at most MOST points. When it is full, each two neighbours become one, and from then on each
point stands for twice as many samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loadtest.outcome import Point

MOST: Final = 720


class Line:
    """One measure. `greatest`: neighbours become the greater of the two, else their mean."""

    def __init__(self, *, greatest: bool = False) -> None:
        self._greatest = greatest
        self._points: list[Point] = []
        self._each = 1
        self._waiting: list[Point] = []

    def add(self, at: float, value: float) -> None:
        """A sample, later than the last."""
        self._waiting.append((at, value))
        if len(self._waiting) < self._each:
            return
        self._points.append(self._joined(self._waiting))
        self._waiting.clear()
        if len(self._points) >= MOST:
            self._points = [self._joined(self._points[index : index + 2]) for index in range(0, len(self._points), 2)]
            self._each *= 2

    def points(self, *, since: float = 0.0) -> list[Point]:
        """The points from that instant on."""
        return [point for point in self._points if point[0] >= since]

    def _joined(self, points: list[Point]) -> Point:
        values = [value for _, value in points]
        value = max(values) if self._greatest else sum(values) / len(values)
        return sum(at for at, _ in points) / len(points), value


class Lines:
    """All measures of a run, by name."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}

    def add(self, at: float, values: Mapping[str, float], *, greatest: bool = False) -> None:
        """Samples taken at the same time. `greatest` counts for names that are new."""
        for name, value in values.items():
            self._lines.setdefault(name, Line(greatest=greatest)).add(at, value)

    def points(self, name: str, *, since: float = 0.0) -> list[Point]:
        """The points of a measure; none where it was never sampled."""
        line = self._lines.get(name)
        return [] if line is None else line.points(since=since)
