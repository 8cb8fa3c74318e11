"""The five fields of a cron expression: their order, ranges and names.

Invariant: a value that leaves `FieldRule.value` lies in its field; 7 is Sunday as 0 is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"), start=1
    )
}
_WEEKDAYS: Final = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}


class TokenFault(Exception):
    """Why one token is refused; `instead` is the token to write, where one token says what was meant."""

    def __init__(self, why: str, *, code: str = "invalid", instead: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.code = code
        self.instead = instead


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldRule:
    """What one field may hold."""

    name: str
    number: int
    low: int
    high: int
    forms: str  # the tokens that it takes, for messages
    names: Mapping[str, int] = field(default_factory=dict)
    interval: str = ""  # how a step larger than the field is written as an interval

    @property
    def size(self) -> int:
        """How many values the field has."""
        return self.high - self.low + 1

    def wrapped(self, value: int) -> int:
        """The value as croniter numbers it: Sunday is 0."""
        return 0 if self.number == 5 and value == 7 else value

    def value(self, text: str) -> int:
        """The number that a number or a name stands for; TokenFault when it is not of this field."""
        if text.isdecimal():
            value, most = int(text), 7 if self.number == 5 else self.high
            if not self.low <= value <= most:
                midnight = "0" if value == self.high + 1 and self.number <= 2 else None
                raise TokenFault(f"must lie in {self.low} to {most}", code="out-of-range", instead=midnight)
            return value
        if text in self.names:
            return self.names[text]
        if text[:3] in self.names:
            raise TokenFault("names have three letters", code="unknown-token", instead=text[:3])
        for other in FIELDS:
            if text[:3] in other.names:
                why = f"{text} belongs in {other.name} (field {other.number})"
                raise TokenFault(why, code="unknown-token")
        raise TokenFault(f"is no token that is known: write {self.forms}", code="unknown-token")

    def longer(self, step: int) -> str:
        """How to have a step that does not fit the field, or nothing."""
        if step <= self.size or not self.interval:
            return ""
        return f' (an interval is written {{"every": "{self.interval.format(step)}"}})'


FIELDS: Final = (
    FieldRule(name="minute", number=1, low=0, high=59, forms="0 to 59, `*`, 0-10, */5 or a list", interval="PT{}M"),
    FieldRule(name="hour", number=2, low=0, high=23, forms="0 to 23, `*`, 9-17, */2 or a list", interval="PT{}H"),
    FieldRule(
        name="day-of-month",
        number=3,
        low=1,
        high=31,
        forms="1 to 31, `*`, 1-7, */2, L, 1W to 28W or a list",
        interval="P{}D",
    ),
    FieldRule(
        name="month", number=4, low=1, high=12, forms="1 to 12, JAN to DEC, `*`, 1-3, */3 or a list", names=_MONTHS
    ),
    FieldRule(
        name="day-of-week",
        number=5,
        low=0,
        high=6,
        forms="0 to 7 (0 and 7 are Sunday), SUN to SAT, `*`, MON-FRI, MON#1, L5 or a list",
        names=_WEEKDAYS,
    ),
)
