"""Cursors: what comes out is what went in, and anything else is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.store.listing import JobFilter, Place
from ringcron_api.cursors import (
    Cursors,
    InvalidCursor,
    instants_from,
    instants_key,
    number_from,
    number_key,
    place_from,
    place_key,
    text_from,
)

INSTANTS = st.integers(-(10**14), 10**17).map(lambda n: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=n))
GENERATIONS = st.integers(0, 2**63 - 1)


@given(st.uuids(), INSTANTS | st.none())
def test_a_job(job_id: UUID, instant: datetime | None) -> None:
    place = Place(job_id=job_id, next_run_at=instant)
    cursors = Cursors("jobs", JobFilter())
    key = cursors.key(cursors.text(place_key(place)))
    assert place_from(key, by_time=instant is not None) == place


@given(GENERATIONS, INSTANTS, INSTANTS)
def test_a_run_and_a_skip(generation: int, first: datetime, second: datetime) -> None:
    assert number_from(number_key(generation)) == generation
    assert instants_from(instants_key(first, second)) == (first, second)


@given(st.text(max_size=60))
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        Cursors("jobs").key(text)


@given(st.binary(max_size=40))
def test_any_key_is_read_or_refused(key: bytes) -> None:
    for read in (
        number_from,
        instants_from,
        text_from,
        lambda key: place_from(key, by_time=True),
        lambda key: place_from(key, by_time=False),
    ):
        try:
            read(key)
        except InvalidCursor:
            pass  # the one fault that is foreseen


def test_a_cursor_of_other_filters_is_refused() -> None:
    text = Cursors("jobs", JobFilter(tag="a")).text(b"x" * 16)
    assert Cursors("jobs", JobFilter(tag="a")).key(text) == b"x" * 16
    with pytest.raises(InvalidCursor):
        Cursors("jobs", JobFilter(tag="b")).key(text)


def test_a_cursor_has_one_spelling() -> None:
    cursors = Cursors("jobs")
    text = cursors.text(b"x" * 16)
    for other in (text + "=", text + "\n", " " + text, text.replace("_", "/") + "!"):
        with pytest.raises(InvalidCursor):
            cursors.key(other)
