"""What a command hands back: figures, tables and charts, and what went wrong. Written and shown by `record`.

Outcome ─▶ record.json   everything, for programs
        ─▶ report.html   the pictures
        ─▶ the terminal  one summary
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from loadtest.distributions import median

Point = tuple[float, float]
ABSENT: Final = -1.0
"""A cell of a heat map about which nothing is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One measured number. `values` has one for each repetition; `meaning` says what it is, in a few words."""

    name: str
    values: Sequence[float]
    unit: str
    meaning: str = ""
    ideal: float | None = None
    """What arithmetic says it would be, where it says something."""
    each: str = "runs"
    """What `values` are of."""

    @property
    def median(self) -> float:
        return median(self.values)

    def text(self) -> str:
        """The median, and the range where there is one."""
        middle = f"{number(self.median)} {self.unit}".strip()
        if len(self.values) < 2:
            return middle
        return f"{middle}  ({number(min(self.values))} to {number(max(self.values))}, {len(self.values)} {self.each})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows of text; numbers are formatted by whoever makes them."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """A line. `role` decides its colour and stroke: `ideal` is dashed, `muted` is grey."""

    name: str
    points: Sequence[Point]
    role: Literal["plain", "ideal", "muted"] = "plain"
    step: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """Instants of the x axis at which something happened."""

    name: str
    at: Sequence[float]
    role: Literal["plain", "muted"] = "muted"


@dataclass(frozen=True, kw_only=True, slots=True)
class LineChart:
    """Lines over a common x axis. `log_x`: logarithmic, for values over 0."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    note: str = ""
    log_x: bool = False
    marks: Sequence[Marks] = ()
    kind: ClassVar[str] = "lines"


@dataclass(frozen=True, kw_only=True, slots=True)
class HeatMap:
    """`cells[row][column]`: a value, None for nothing, ABSENT for nothing known. `columns` are the left edges on the x
    axis, and one more. `nothing` and `absent` say what these two mean, in the legend; empty: it does not occur."""

    title: str
    x: str
    y: str
    unit: str
    rows: Sequence[str]
    columns: Sequence[float]
    cells: Sequence[Sequence[float | None]]
    nothing: str
    absent: str = ""
    note: str = ""
    kind: ClassVar[str] = "heat"


@dataclass(frozen=True, kw_only=True, slots=True)
class BarChart:
    """Horizontal bars, one a row; `low` and `high` draw the range, `role` the colour."""

    title: str
    x: str
    bars: Sequence[Bar]
    note: str = ""
    kind: ClassVar[str] = "bars"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One bar of a bar chart."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    role: Literal["plain", "ideal", "muted"] = "plain"


Chart = LineChart | HeatMap | BarChart


@dataclass(kw_only=True, slots=True)
class Outcome:
    """Filled in by a command. Any of `problems` makes the exit code 1."""

    command: str
    title: str
    question: str
    arguments: Mapping[str, Any]
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    runs: list[Mapping[str, Any]] = field(default_factory=list)
    """One document for each repetition, with its samples."""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def figure(self, name: str, value: float | Sequence[float], unit: str, **more: Any) -> None:
        """Add a figure."""
        values = [value] if isinstance(value, int | float) else list(value)
        self.figures.append(Figure(name=name, values=values, unit=unit, **more))


def number(value: float) -> str:
    """A number for people: three digits that matter, thousands apart; a whole number as it is."""
    size = abs(value)
    if size >= 1000 or value == round(value):
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    return f"{value:.3f}" if size >= 0.0005 else f"{value:.2g}"
