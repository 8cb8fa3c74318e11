"""Numbers, lengths of time and instants for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from ringcron.instants import format_instant
from ringcron.models import Arc
from ringcron_api.dashboard.markup import Markup, tag

_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def number(value: int, *, capped: bool = False) -> str:
    """`1,234`; `1,000+` where it was not counted further."""
    return f"{value:,}{'+' if capped else ''}"


def counted(value: int, noun: str, *, capped: bool = False) -> str:
    """`1 job`, `1,234 jobs`."""
    return f"{number(value, capped=capped)} {noun}{'' if value == 1 and not capped else 's'}"


def span(seconds: float) -> str:
    """A length of time: `0.4 s`, `32 s`, `1 min 32 s`, `2 h 5 min`: its two largest units."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    left = round(seconds)
    parts = []
    for unit, length in _UNITS:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def clock(instant: datetime) -> str:
    """`13:00:05`, in UTC."""
    return instant.astimezone(UTC).strftime("%H:%M:%S")


def stamp_words(instant: datetime) -> str:
    """`2027-01-01 13:00:05 UTC`"""
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def stamp(instant: datetime | None, now: datetime, *, missing: str = "–") -> Markup:
    """How long ago or ahead, with the instant on hover and for machines."""
    if instant is None:
        return tag("span", missing, class_="none")
    seconds = (now - instant).total_seconds()
    said = f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"
    exact = format_instant(instant)
    return tag("time", said, datetime=exact, title=exact)


def moment(instant: datetime | None, *, missing: str = "–") -> Markup:
    """The instant itself: `2027-01-01 13:00:05`, with its fraction on hover."""
    if instant is None:
        return tag("span", missing, class_="none")
    exact = format_instant(instant)
    return tag("time", instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"), datetime=exact, title=exact)


def slots(arcs: Sequence[Arc], most: int = 3) -> str:
    """`slots 0–99, 200–4095 and 3 more arcs`."""
    if not arcs:
        return "no slots"
    shown = ", ".join(str(arc.lo) if arc.lo == arc.hi else f"{arc.lo}–{arc.hi}" for arc in arcs[:most])
    more = f" and {counted(len(arcs) - most, 'more arc')}" if len(arcs) > most else ""
    return f"{'slot' if len(arcs) == 1 and len(arcs[0]) == 1 else 'slots'} {shown}{more}"


def names(of: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 2 more`."""
    more = "" if len(of) <= most else f" and {len(of) - most} more"
    return ", ".join(of[:most]) + more
