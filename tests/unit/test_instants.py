"""RFC 3339 instants: what is read, what is refused and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.instants import format_instant, parse_instant
from ringcron.models import EARLIEST, LATEST


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("2027-01-31T09:00:00Z", "2027-01-31T09:00:00Z"),
        ("2027-01-31t09:00:00z", "2027-01-31T09:00:00Z"),
        ("2027-01-31 10:00:00+01:00", "2027-01-31T09:00:00Z"),
        ("2027-01-31T09:00:00.5-00:00", "2027-01-31T09:00:00.500000Z"),
        ("2027-01-31T09:00:00.123456789Z", "2027-01-31T09:00:00.123456Z"),
        ("2000-01-01T00:00:00Z", "2000-01-01T00:00:00Z"),
        ("8999-12-31T23:59:59.999999Z", "8999-12-31T23:59:59.999999Z"),
    ],
)
def test_read(text: str, normal: str) -> None:
    assert format_instant(parse_instant(text)) == normal


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2027-01-31T09:00:00", "has no offset: write 2027-01-31T09:00:00Z for UTC"),
        ("2027-01-31T09:00:60Z", "second 60"),
        ("2027-02-30T09:00:00Z", "no date and time that exists"),
        ("2027-01-31T24:00:00Z", "no date and time that exists"),
        ("2027-01-31T09:00:00+25:00", "no date and time that exists"),
        ("0000-01-01T00:00:00Z", "no date and time that exists"),
        ("0001-01-01T00:00:00+14:00", "no date and time that exists"),
        ("1970-01-01T00:00:00Z", "years 2000 to 8999"),
        ("9000-01-01T00:00:00Z", "years 2000 to 8999"),
        ("9999-12-31T23:59:59-14:00", "no date and time that exists"),
        ("infinity", "RFC 3339"),
        ("-infinity", "RFC 3339"),
        ("2027-01-31", "RFC 3339"),
        ("20270131T090000Z", "RFC 3339"),
        ("2027-W01-1T09:00:00Z", "RFC 3339"),
        ("2027-01-31T09:00Z", "RFC 3339"),
        ("2027-01-31T09:00:00Z\n", "RFC 3339"),
        ("٢027-01-31T09:00:00Z", "RFC 3339"),
        ("10000-01-01T00:00:00Z", "RFC 3339"),
        ("", "RFC 3339"),
    ],
)
def test_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_instant(text)


@given(
    st.datetimes(
        min_value=EARLIEST.replace(tzinfo=None) + timedelta(days=1),
        max_value=LATEST.replace(tzinfo=None) - timedelta(days=1),
    ),
    st.integers(-14 * 60, 14 * 60),
)
def test_what_is_written_is_read_back(naive: datetime, offset: int) -> None:
    instant = naive.replace(tzinfo=timezone(timedelta(minutes=offset)))
    read = parse_instant(format_instant(instant))
    assert read == instant
    assert read.tzinfo is UTC
