"""Where a page ended, as an opaque text.

Invariant: a cursor is good only for the list and the filters that it came from; any other text is InvalidCursor, never
a fault further in. It holds a version, a mark of list and filters, and the sort key of the last element: nothing about
a server, so that any API process takes it.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from struct import Struct
from typing import Final
from uuid import UUID

from ringcron.store.listing import Place

_VERSION: Final = 1
_MARK_BYTES: Final = 6
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ONE: Final = Struct(">q")
_TWO: Final = Struct(">qq")
_LONGEST: Final = 1024


class InvalidCursor(Exception):
    """The cursor is not one that this list gave out for these filters."""


class Cursors:
    """The cursors of one list under its filters."""

    def __init__(self, *parts: object) -> None:
        """`parts`: what list it is and every filter in force; limit and cursor are none."""
        self._head = bytes([_VERSION]) + blake2b(repr(parts).encode(), digest_size=_MARK_BYTES).digest()

    def text(self, key: bytes) -> str:
        """The cursor after the element of this sort key."""
        return urlsafe_b64encode(self._head + key).rstrip(b"=").decode("ascii")

    def key(self, text: str) -> bytes:
        """The sort key in a cursor. Raises InvalidCursor."""
        if len(text) > _LONGEST or not text.isascii():
            raise InvalidCursor
        try:
            whole = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except (binascii.Error, ValueError):
            raise InvalidCursor from None
        if not whole.startswith(self._head) or self.text(whole[len(self._head) :]) != text:
            raise InvalidCursor
        return whole[len(self._head) :]


def place_key(place: Place) -> bytes:
    """The sort key of a job: its id, and before it, in a list by time, its next_run_at."""
    head = b"" if place.next_run_at is None else _ONE.pack(_microseconds(place.next_run_at))
    return head + place.job_id.bytes


def place_from(key: bytes, *, by_time: bool) -> Place:
    head, tail = (key[:8], key[8:]) if by_time else (b"", key)
    if len(tail) != 16 or len(head) not in (0, 8):
        raise InvalidCursor
    return Place(job_id=UUID(bytes=tail), next_run_at=_instant(*_ONE.unpack(head)) if head else None)


def number_key(number: int) -> bytes:
    """The sort key of a run, its generation; of an audit entry, its id."""
    return _ONE.pack(number)


def number_from(key: bytes) -> int:
    if len(key) != _ONE.size:
        raise InvalidCursor
    number: int = _ONE.unpack(key)[0]
    return number


def instants_key(first: datetime, second: datetime) -> bytes:
    """The sort key of a skip: its first tick and when it was decided."""
    return _TWO.pack(_microseconds(first), _microseconds(second))


def instants_from(key: bytes) -> tuple[datetime, datetime]:
    if len(key) != _TWO.size:
        raise InvalidCursor
    first, second = _TWO.unpack(key)
    return _instant(first), _instant(second)


def text_from(key: bytes) -> str:
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidCursor from None
    if "\0" in text:
        raise InvalidCursor
    return text


def _microseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


def _instant(microseconds: int) -> datetime:
    try:
        return _EPOCH + microseconds * _MICROSECOND
    except OverflowError:
        raise InvalidCursor from None
