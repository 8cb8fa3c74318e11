"""The heat map and the ring as tables and SVG. Pure.

Invariant: a colour is never alone: the number stands beside it or on hover, and slots without an owner differ in shape
(a black band with a border), not in shade. Runs of cells of one level are one shape, so that a quiet pool is a small
page: about a hundred bytes a worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ringcron.models import Arc
from ringcron.slots import SLOT_COUNT
from ringcron.store.looking import Transit
from ringcron_api.dashboard.markup import Markup, join, tag
from ringcron_api.dashboard.phrases import counted, span
from ringcron_api.shards import RingView, SlotLate, arcs_of

LEVELS: Final = (0.5, 1.0, 5.0, 30.0, 120.0)
"""Seconds of lag at which a colour gives way to the next."""
LEVEL_WORDS: Final = ("≤ 0.5 s", "≤ 1 s", "≤ 5 s", "≤ 30 s", "≤ 2 min", "> 2 min")
CELLS: Final = 64
"""Cells of a row at most."""
COLOURS: Final = 8
_CENTRE: Final = 100.0
_OUTER: Final = (78.0, 96.0)
_INNER: Final = (64.0, 74.0)
_GROUPS: Final = 128


def level_of(lag_seconds: float) -> int:
    """0 to 5."""
    return sum(lag_seconds > edge for edge in LEVELS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """A row of cells, each standing for `group` slots of `slots`, in order."""

    slots: tuple[int, ...]
    group: int
    late: Mapping[int, SlotLate]

    def cells(self) -> list[SlotLate | None]:
        """What is late in each cell."""
        found: list[SlotLate | None] = []
        for start in range(0, len(self.slots), self.group):
            lates = [self.late[slot] for slot in self.slots[start : start + self.group] if slot in self.late]
            whole: SlotLate | None = None
            for late in lates:
                whole = late.beside(whole)
            found.append(whole)
        return found


def group_size(ring: RingView) -> int:
    """How many slots a cell stands for, so that the largest row fits."""
    largest = max([len(held.slots) for held in ring.held] + [len(ring.unowned), 1])
    return math.ceil(largest / CELLS)


def strip_of(strip: Strip, label: str, *, unowned: bool = False) -> Markup:
    """A strip as SVG. The script reads the data on hover; without it the title has the worst."""
    cells = strip.cells()
    runs: dict[str, list[str]] = {}
    for name, start, length in _runs(["lx" if unowned else _name(cell) for cell in cells]):
        runs.setdefault(name, []).append(f"M{start} 0h{length}v1h-{length}z")
    paths = [tag("path", class_=name, d="".join(parts)) for name, parts in runs.items()]
    late = ",".join(
        f"{number}:{cell.lag_seconds:.1f}:{cell.due}" for number, cell in enumerate(cells) if cell is not None
    )
    return tag(
        "svg",
        tag("title", label),
        paths,
        class_="strip unowned" if unowned else "strip",
        viewBox=f"0 0 {CELLS} 1",
        preserveAspectRatio="none",
        role="img",
        data_group=strip.group,
        data_arcs=",".join(f"{arc.lo}-{arc.hi}" for arc in arcs_of(strip.slots)),
        data_late=late,
    )


def _name(cell: SlotLate | None) -> str:
    return f"l{0 if cell is None else level_of(cell.lag_seconds)}"


def _runs(names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    start = 0
    for position in range(1, len(names) + 1):
        if position == len(names) or names[position] != names[start]:
            yield names[start], start, position - start
            start = position


def legend() -> Markup:
    """What the colours mean."""
    items = [tag("li", tag("i", class_=f"swatch l{level}"), words) for level, words in enumerate(LEVEL_WORDS)]
    unowned = tag("li", tag("i", class_="swatch lx"), "no owner")
    return tag("ul", items, unowned, class_="legend", aria_label="Lag by colour")


def ring_svg(ring: RingView, transits: Sequence[Transit]) -> Markup:
    """The ring: slices outside, the worst lag inside, arcs in handover hatched."""
    colours = {held.worker.worker_id: number % COLOURS for number, held in enumerate(ring.held)}
    shapes: list[Markup] = []
    taken: set[int] = set(ring.unowned)
    for held in ring.held:
        mine = [slot for slot in held.slots if slot not in taken]
        taken.update(mine)  # without ZooKeeper each owns all: the first one is drawn
        name = held.worker.worker_id
        shapes += [_arc(arc, _OUTER, f"w{colours[name]}", f"{name}: slots {arc.lo}–{arc.hi}") for arc in arcs_of(mine)]
    shapes += [_arc(arc, _OUTER, "lx", f"no owner: slots {arc.lo}–{arc.hi}") for arc in arcs_of(ring.unowned)]
    shapes += [
        _arc(
            one.arc,
            (_OUTER[0] - 2, _OUTER[1] + 3),
            "transit",
            f"in handover: slots {one.arc.lo}–{one.arc.hi}, {one.giver or 'nobody'} → {one.taker or 'nobody'}",
        )
        for one in transits
    ]
    size = SLOT_COUNT // _GROUPS
    inner = []
    for name, start, length in _runs([_worst(ring.late, group * size, size) for group in range(_GROUPS)]):
        arc = Arc(lo=start * size, hi=(start + length) * size - 1)
        inner.append(_arc(arc, _INNER, name, f"slots {arc.lo}–{arc.hi}: lag {LEVEL_WORDS[int(name[1])]}"))
    hatch = tag(
        "defs",
        tag(
            "pattern",
            tag("rect", width=4, height=4, class_="hatch-back"),
            tag("path", d="M0 4L4 0", class_="hatch-line"),
            id="hatch",
            width=4,
            height=4,
            patternUnits="userSpaceOnUse",
        ),
    )
    workers = counted(len(ring.held), "worker")
    words = tag(
        "g",
        tag("text", f"epoch {ring.epoch}" if ring.epoch else "one ring", x=100, y=97, class_="big"),
        tag("text", workers, x=100, y=112),
    )
    owned = SLOT_COUNT - len(ring.unowned)
    label = f"The ring: {workers}, {owned:,} of {SLOT_COUNT:,} slots owned, {counted(len(transits), 'arc')} in handover"
    return tag(
        "svg", tag("title", label), hatch, shapes, inner, words, class_="ring", viewBox="-4 -4 208 208", role="img"
    )


def _worst(late: Mapping[int, SlotLate], start: int, size: int) -> str:
    found = [late[slot].lag_seconds for slot in range(start, start + size) if slot in late]
    return f"l{level_of(max(found, default=0.0))}"


def _arc(arc: Arc, radii: tuple[float, float], name: str, title: str) -> Markup:
    inner, outer = radii
    if len(arc) >= SLOT_COUNT:
        middle = (inner + outer) / 2
        return tag(
            "circle", tag("title", title), cx=100, cy=100, r=middle, class_=f"whole {name}", stroke_width=outer - inner
        )
    begin, end = (2 * math.pi * slot / SLOT_COUNT for slot in (arc.lo, arc.hi + 1))
    large = int(end - begin > math.pi)
    points = [_point(begin, outer), _point(end, outer), _point(end, inner), _point(begin, inner)]
    d = (
        f"M{points[0]}A{outer:g} {outer:g} 0 {large} 1 {points[1]}L{points[2]}"
        f"A{inner:g} {inner:g} 0 {large} 0 {points[3]}Z"
    )
    return tag("path", tag("title", title), d=d, class_=name)


def _point(angle: float, radius: float) -> str:
    return f"{_CENTRE + radius * math.sin(angle):.2f} {_CENTRE - radius * math.cos(angle):.2f}"


def late_words(late: SlotLate | None) -> Markup:
    """The lag of a row in words, coloured by its level."""
    if late is None:
        return tag("td", "0 s", class_="num none")
    return tag(
        "td", join(tag("i", class_=f"swatch l{level_of(late.lag_seconds)}"), span(late.lag_seconds)), class_="num"
    )
