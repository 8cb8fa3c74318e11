"""Instants as text: RFC 3339 with an offset in, UTC with `Z` out.

Invariant: no instant without an offset gets in, and none outside [EARLIEST, LATEST): the rest of the code may compare
and add without a fault. Python's own reader is laxer than RFC 3339, so the form is checked here first.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from ringcron.models import EARLIEST, LATEST

MICROSECOND: Final = timedelta(microseconds=1)

_FORM: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,12}))?([Zz]|[+-]\d{2}:\d{2})?", re.ASCII
)


def parse_instant(text: str) -> datetime:
    """The instant that an RFC 3339 text names, in UTC; digits finer than a microsecond are dropped.

    ValueError, with a sentence for the caller, when it has no offset, does not exist (second 60, 30 February) or lies
    outside the years 2000 to 8999.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError("must be an RFC 3339 instant with an offset, such as 2027-01-31T09:00:00Z")
    day, time, fraction, offset = form.groups()
    if offset is None:
        raise ValueError(f"has no offset: write {day}T{time}Z for UTC, or an offset such as +01:00")
    if time.endswith(":60"):
        raise ValueError("second 60 cannot be scheduled: write the first instant of the next minute")
    try:
        instant = datetime.fromisoformat(f"{day}T{time}.{(fraction or '')[:6]:0<6}{offset.upper()}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is no date and time that exists") from None
    if not EARLIEST <= instant < LATEST:
        raise ValueError(f"must lie in the years {EARLIEST.year} to {LATEST.year - 1}")
    return instant


def format_instant(instant: datetime) -> str:
    """`2027-01-31T09:00:00Z`, with microseconds only where there are some."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
