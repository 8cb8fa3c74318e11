"""ISO 8601 durations, exact both ways."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.durations import LONGEST, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration", "normal"),
    [
        ("PT15M", timedelta(minutes=15), "PT15M"),
        ("P1D", timedelta(days=1), "P1D"),
        ("PT24H", timedelta(days=1), "P1D"),
        ("PT90M", timedelta(hours=1, minutes=30), "PT1H30M"),
        ("P2W", timedelta(weeks=2), "P14D"),
        ("P1DT2H3M4.5S", timedelta(days=1, hours=2, minutes=3, seconds=4.5), "P1DT2H3M4.5S"),
        ("PT0,25S", timedelta(milliseconds=250), "PT0.25S"),
        ("PT0.000001S", timedelta(microseconds=1), "PT0.000001S"),
        ("PT1.1000000S", timedelta(seconds=1.1), "PT1.1S"),
        ("PT0S", timedelta(0), "PT0S"),
        ("P0D", timedelta(0), "PT0S"),
        ("PT3600S", timedelta(hours=1), "PT1H"),
        ("P36525D", LONGEST, "P36525D"),
    ],
)
def test_both_ways(text: str, duration: timedelta, normal: str) -> None:
    assert parse_duration(text) == duration
    assert format_duration(duration) == normal


@given(st.timedeltas(min_value=timedelta(0), max_value=LONGEST))
def test_what_is_written_is_read_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("P1Y", "a year has no fixed length"),
        ("P1M", "a month has no fixed length: write days .*minutes stand after a T"),
        ("P1Y2M3DT4H", "a year has no fixed length"),
        ("PT1.5H", "must be an ISO 8601 duration"),
        ("PT0.0000001S", "finer than a microsecond"),
        ("P36525DT1S", "must not be longer than P36525D"),
        ("P999999999W", "must not be longer than P36525D"),
        ("PT999999999999S", "must not be longer than P36525D"),
        ("-PT1S", "must not be negative"),
        ("pt15m", "write PT15M"),
        ("15m", "write PT15M"),
        ("90", "write PT90S"),
        ("2 hours", "write PT2H"),
        ("3d", "write P3D"),
        ("P", "must be an ISO 8601 duration such as"),
        ("p", "must be an ISO 8601 duration such as"),
        ("PT", "must be an ISO 8601 duration such as"),
        ("P1DT", "must be an ISO 8601 duration such as"),
        ("", "must be an ISO 8601 duration such as"),
        ("PT15M ", "must be an ISO 8601 duration such as"),
        ("PT15M\n", "must be an ISO 8601 duration such as"),
        ("PT٣M", "must be an ISO 8601 duration such as"),
        ("P1WT1H", "must be an ISO 8601 duration such as"),
        ("P1H", "must be an ISO 8601 duration such as"),
        ("PT1M1H", "must be an ISO 8601 duration such as"),
        ("P" + "9" * 100_000 + "D", "must be an ISO 8601 duration such as"),
    ],
)
def test_refusals(text: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        parse_duration(text)


def test_a_negative_duration_is_never_written() -> None:
    with pytest.raises(ValueError, match="never negative"):
        format_duration(timedelta(seconds=-1))
