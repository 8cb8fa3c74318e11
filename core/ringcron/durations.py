"""ISO 8601 durations as text, exact to the microsecond.

Invariant: a duration is a number of microseconds, never a number of calendar units. A day is 24 hours; years and months
have no fixed length and are refused. What `format_duration` writes, `parse_duration` reads back to the same value.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

LONGEST: Final = timedelta(days=36525)
"""The longest duration that is read: a hundred years."""

_FORM: Final = re.compile(
    r"P(?:(?P<weeks>\d{1,9})W|"
    r"(?:(?P<days>\d{1,9})D)?"
    r"(?P<time>T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,12})(?:[.,](?P<fraction>\d+))?S)?)?)",
    re.ASCII,
)
_CALENDAR: Final = re.compile(r"P[^T]*?\d(?P<unit>[YM])", re.ASCII)
_INFORMAL: Final = re.compile(
    r"(?P<number>\d{1,9})\s*(?P<unit>s|m|h|d|sec|min|hours?|days?|minutes?|seconds?)?", re.ASCII
)
_MICROSECOND: Final = timedelta(microseconds=1)


def parse_duration(text: str) -> timedelta:
    """`PT15M`, `P1D`, `PT1.5S`, `P2W`: the duration that the text names, from zero to a hundred years.

    ValueError, with a sentence for the caller that says what to write instead, for anything else.
    """
    form = _FORM.fullmatch(text)
    if form is None or text == "P" or form["time"] == "T":
        raise ValueError(_advice(text))
    fraction = (form["fraction"] or "").rstrip("0")
    if len(fraction) > 6:
        raise ValueError("is finer than a microsecond: write at most six digits after the point")
    days = 7 * int(form["weeks"] or 0) + int(form["days"] or 0)
    minutes = 60 * (24 * days + int(form["hours"] or 0)) + int(form["minutes"] or 0)
    microseconds = 1_000_000 * (60 * minutes + int(form["seconds"] or 0)) + int(f"{fraction:0<6}")
    if microseconds > LONGEST // _MICROSECOND:
        raise ValueError(f"must not be longer than {format_duration(LONGEST)}")
    return timedelta(microseconds=microseconds)


def format_duration(duration: timedelta) -> str:
    """The shortest exact form in days, hours, minutes and seconds: `P1DT12H`, `PT0.25S`, `PT0S`. Never negative."""
    if duration < timedelta(0):
        raise ValueError("a duration is never negative")
    seconds, microseconds = divmod(duration // _MICROSECOND, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    fraction = f".{microseconds:06}".rstrip("0") if microseconds else ""
    date = f"{day}D" if day else ""
    time = "".join((f"{hour}H" if hour else "", f"{minute}M" if minute else ""))
    if second or microseconds or not (date or time):
        time += f"{second}{fraction}S"
    return f"P{date}T{time}" if time else f"P{date}"


def _advice(text: str) -> str:
    example = "such as PT15M, PT1H30M or P1D"
    calendar = _CALENDAR.match(text)
    if calendar is not None:
        unit = "a year" if calendar["unit"] == "Y" else "a month"
        return f"{unit} has no fixed length: write days ({example}), or use a cron schedule; minutes stand after a T"
    if _FORM.fullmatch(text.upper()) is not None and text.upper() != "P" and not text.upper().endswith("T"):
        return f"is written in capitals: write {text.upper()}"
    if text.startswith("-"):
        return "must not be negative"
    informal = _INFORMAL.fullmatch(text.strip().lower())
    if informal is not None:
        unit = (informal["unit"] or "s")[0].upper()
        written = f"P{informal['number']}D" if unit == "D" else f"PT{informal['number']}{unit}"
        return f"must be an ISO 8601 duration: write {written}"
    return f"must be an ISO 8601 duration {example}"
