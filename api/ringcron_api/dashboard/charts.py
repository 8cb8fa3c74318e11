"""The spike view's charts as SVG: the last ten minutes, the next hour. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ringcron.forecast import Coming
from ringcron.store.snapshot import PACE_SECONDS, Pace
from ringcron_api.dashboard.markup import Markup, tag
from ringcron_api.dashboard.phrases import clock, counted
from ringcron_api.dashboard.spike import scale_top

_WIDTH: Final = 600
_HEIGHT: Final = 120
_AHEAD_WIDTH: Final = 720
"""One unit of the next hour's chart is five seconds: the busiest of them is drawn."""


def pace_chart(pace: Pace) -> Markup:
    """Jobs that waited (filled) and runs that began (line), second by second, up to now."""
    due = [0 if value is None else value for value in pace.due]
    top = scale_top([*due, *pace.started])
    left = PACE_SECONDS - len(pace.started)
    waited = _area([(left + index, None if value is None else value) for index, value in enumerate(pace.due)], top)
    began = _line([(left + index, value) for index, value in enumerate(pace.started)], top)
    shapes = [
        tag("path", d=waited, class_="due") if waited else None,
        tag("path", d=began, class_="started") if began else None,
    ]
    begin = pace.until - timedelta(seconds=PACE_SECONDS)
    marks = [(begin + timedelta(seconds=minute * 60), minute * 60) for minute in (2, 4, 6, 8)]
    label = f"The last ten minutes: at most {counted(max(due, default=0), 'job')} waited, at most "
    label += f"{max(pace.started, default=0):,} runs began in a second"
    return _frame(shapes, top, [(clock(at)[:5], x) for at, x in marks], _WIDTH, label, class_="pace")


def ahead_chart(coming: Coming) -> Markup:
    """Jobs that become due in the next hour: for every five seconds the busiest one."""
    due, at = coming.due, coming.start
    bars = {place: most for place in range(_AHEAD_WIDTH) if (most := max(due[place * 5 : place * 5 + 5], default=0))}
    top = scale_top(list(bars.values()))
    d = "".join(f"M{place} {_HEIGHT}v-{max(most / top * _HEIGHT, 1):.1f}" for place, most in bars.items())
    shapes = [tag("path", d=d, class_="ahead")] if d else []
    marks = [(clock(at + timedelta(minutes=minute))[:5], minute * 12) for minute in (10, 20, 30, 40, 50)]
    label = f"The next hour: {counted(sum(due), 'job')}, at most {max(bars.values(), default=0):,} in a second"
    return _frame(shapes, top, marks, _AHEAD_WIDTH, label, class_="next")


def _frame(
    shapes: Sequence[Markup | None], top: int, marks: list[tuple[str, int]], width: int, label: str, *, class_: str
) -> Markup:
    lines = [tag("path", d=f"M0 {y}H{width}", class_="grid") for y in (0, _HEIGHT // 2, _HEIGHT)]
    ticks = [tag("path", d=f"M{x} 0V{_HEIGHT}", class_="grid") for _, x in marks]
    drawing = tag(
        "svg",
        tag("title", label),
        lines,
        ticks,
        shapes,
        viewBox=f"0 0 {width} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
    )
    scale = tag(
        "ol", tag("li", f"{top:,}"), tag("li", f"{top // 2:,}"), tag("li", "0"), class_="scale", aria_hidden="true"
    )
    times = tag("ol", [tag("li", text) for text, _ in marks], class_="times", aria_hidden="true")
    return tag("div", scale, drawing, times, class_=f"chart {class_}")


def _line(points: list[tuple[int, int]], top: int) -> str:
    """A stepped line through runs of equal values."""
    parts: list[str] = []
    before: int | None = None
    for x, value in points:
        if value != before:
            parts.append(f"{'M' if before is None else 'H'}{x}{' ' if before is None else 'V'}{_y(value, top)}")
        before = value
    if before is not None:
        parts.append(f"H{points[-1][0] + 1}")
    return "".join(parts)


def _area(points: list[tuple[int, int | None]], top: int) -> str:
    """Filled steps; nothing where nobody looked."""
    parts: list[str] = []
    begun: int | None = None
    end = 0
    for x, value in [*points, (len(points), None)]:
        if begun is None and value is not None:
            parts.append(f"M{x} {_HEIGHT}V{_y(value, top)}")
        elif begun is not None and value is None:
            parts.append(f"H{end}V{_HEIGHT}Z")
        elif value is not None and value != begun:
            parts.append(f"H{x}V{_y(value, top)}")
        begun = value
        end = x + 1
    return "".join(parts)


def _y(value: int, top: int) -> str:
    return f"{_HEIGHT - value / top * _HEIGHT:.1f}".removesuffix(".0")
