"""How the values of the client stand on the wire: camelCase names, instants in UTC with `Z`, durations in ISO 8601.

Invariant: in Python an instant is aware and a duration is a timedelta, in both directions. Members that this version
does not know are passed over, because later versions of the API may show more.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, TypeVar, cast

from pydantic import ConfigDict, PlainSerializer, PlainValidator, TypeAdapter
from pydantic.alias_generators import to_camel

from ringcron.durations import format_duration, parse_duration
from ringcron.instants import format_instant

V = TypeVar("V")

CONFIG: Final = ConfigDict(alias_generator=to_camel)


class Value:
    """Base of every dataclass that is read from an answer or written into a request."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = CONFIG


def instant_text(instant: datetime) -> str:
    """The instant as a request holds it. ValueError where it has no offset: nobody could tell which instant it is."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} has no offset: use an aware datetime, such as datetime.now(UTC)")
    return format_instant(instant)


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError("has no offset")
    return instant.astimezone(UTC)


def _seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def _from(kind: type | UnionType, reader: Callable[[Any], V]) -> PlainValidator:
    """Reads a JSON value of one kind, and refuses any other."""

    def read_value(value: Any) -> V:
        if not isinstance(value, kind):
            raise ValueError(f"must not be {value!r:.40}")
        return reader(value)

    return PlainValidator(read_value)


Instant = Annotated[datetime, _from(str, _instant), PlainSerializer(instant_text)]
Duration = Annotated[timedelta, _from(str, parse_duration), PlainSerializer(format_duration)]
Seconds = Annotated[timedelta, _from(int | float, _seconds), PlainSerializer(timedelta.total_seconds)]
"""A duration that the API gives as a number: `lagSeconds`."""


def read(kind: type[V], document: Any) -> V:
    """The value that a part of an answer is. ValueError where it is none of that kind."""
    value: V = _adapter(cast(Any, kind)).validate_python(document)
    return value


def document_of(value: Value, *, whole: bool = False) -> dict[str, Any]:
    """The value as JSON has it. What is None is left out, so that the API's default applies, unless `whole`."""
    document: dict[str, Any] = _adapter(cast(Any, type(value))).dump_python(
        value, by_alias=True, exclude_none=not whole
    )
    return document


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
