"""The kinds of values that requests hold: how each is read, and what the OpenAPI document says of it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from ringcron.durations import LONGEST, format_duration, parse_duration
from ringcron.handlers import HANDLER_NAME
from ringcron.instants import parse_instant

DURATION_PATTERN: Final = r"^P(\d+W|(\d+D)?(T(\d+H)?(\d+M)?(\d+([.,]\d{1,6})?S)?)?)$"
KEY_LIMIT: Final = 512
NAME_LIMIT: Final = 256
TAG_LIMIT: Final = 128
REASON_LIMIT: Final = 1024
TAGS_LIMIT: Final = 64
LONGEST_BACKOFF: Final = timedelta(days=30)
LONGEST_TIMEOUT: Final = timedelta(days=365)
LONGEST_ALERT: Final = timedelta(days=400)
LONGEST_JITTER: Final = timedelta(hours=24)
MAX_PAGE: Final = 500
DEFAULT_PAGE: Final = 100


def _instant(value: Any) -> datetime:
    if not isinstance(value, str):
        raise PydanticCustomError("type", "must be text such as 2027-01-31T09:00:00Z")
    try:
        return parse_instant(value)
    except ValueError as fault:
        raise PydanticCustomError("invalid", "{fault}", {"fault": str(fault)}) from None


Instant = Annotated[
    datetime,
    PlainValidator(_instant),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "description": "RFC 3339 with an offset, in the years 2000 to 8999; kept to the microsecond, shown in UTC.",
            "examples": ["2027-01-31T09:00:00Z", "2027-01-31T10:00:00+01:00"],
        }
    ),
]


def _duration(least: timedelta, most: timedelta) -> PlainValidator:
    def read(value: Any) -> timedelta:
        if not isinstance(value, str):
            raise PydanticCustomError("type", "must be text such as PT15M")
        try:
            duration = parse_duration(value)
        except ValueError as fault:
            raise PydanticCustomError("invalid", "{fault}", {"fault": str(fault)}) from None
        if not least <= duration <= most:
            lies = f"must lie in {format_duration(least)} to {format_duration(most)}"
            raise PydanticCustomError("out-of-range", "{lies}", {"lies": lies})
        return duration

    return PlainValidator(read)


def _duration_schema(least: timedelta, most: timedelta) -> WithJsonSchema:
    described = f"ISO 8601 without years and months, {format_duration(least)} to {format_duration(most)}."
    schema = {"type": "string", "pattern": DURATION_PATTERN, "description": described, "examples": ["PT30S", "PT1H30M"]}
    return WithJsonSchema(schema)


_NOTHING: Final = timedelta(0)
_MILLISECOND: Final = timedelta(milliseconds=1)
_SECOND: Final = timedelta(seconds=1)
Backoff = Annotated[timedelta, _duration(_NOTHING, LONGEST_BACKOFF), _duration_schema(_NOTHING, LONGEST_BACKOFF)]
Timeout = Annotated[
    timedelta, _duration(_MILLISECOND, LONGEST_TIMEOUT), _duration_schema(_MILLISECOND, LONGEST_TIMEOUT)
]
Jitter = Annotated[timedelta, _duration(_NOTHING, LONGEST_JITTER), _duration_schema(_NOTHING, LONGEST_JITTER)]
_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
Horizon = Annotated[timedelta, _duration(_MINUTE, _DAY), _duration_schema(_MINUTE, _DAY)]
Late = Annotated[timedelta, _duration(_SECOND, LONGEST_ALERT), _duration_schema(_SECOND, LONGEST_ALERT)]
NoSuccess = Annotated[timedelta, _duration(_SECOND, LONGEST_ALERT), _duration_schema(_SECOND, LONGEST_ALERT)]
Lead = Annotated[timedelta, _duration(_NOTHING, _HOUR), _duration_schema(_NOTHING, _HOUR)]
Clear = Annotated[timedelta, _duration(_SECOND, _HOUR), _duration_schema(_SECOND, _HOUR)]
CatchupWindow = Annotated[timedelta, _duration(_SECOND, LONGEST), _duration_schema(_SECOND, LONGEST)]


def _whole(value: Any) -> Any:
    """66.0 is a whole number in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Attempts = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_whole)]
Count = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_whole)]


def _digits(value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,9}", value, re.ASCII):
        raise PydanticCustomError("type", "must be a whole number")
    return int(value)


PageSize = Annotated[int, Field(ge=1, le=MAX_PAGE), BeforeValidator(_digits)]
"""A whole number as a query writes it."""


RedriveLimit = Annotated[int, Field(ge=1, le=10_000), BeforeValidator(_digits)]


def _decimal(value: Any) -> float:
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII):
        raise PydanticCustomError("type", "must be a number such as 50 or 0.5")
    return float(value)


PerSecond = Annotated[float, Field(ge=0.01, le=10_000), BeforeValidator(_decimal)]


def _flag(value: Any) -> bool:
    if value not in ("true", "false"):
        raise PydanticCustomError("type", "must be true or false")
    return bool(value == "true")


Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]


def _handler(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("type", "must be text")
    if not HANDLER_NAME.fullmatch(value):
        raise PydanticCustomError("invalid", "must be 1 to 128 letters, digits and _.:/-, the first a letter or digit")
    return value


HandlerName = Annotated[
    str,
    PlainValidator(_handler),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": f"^{HANDLER_NAME.pattern}$",
            "description": "Who runs the job: only workers that have this handler claim it.",
            "examples": ["http", "command", "my.reports/monthly"],
        }
    ),
]
Key = Annotated[str, Field(min_length=1, max_length=KEY_LIMIT)]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT)]
PauseReason = Annotated[str, Field(min_length=1, max_length=REASON_LIMIT)]
Tag = Annotated[str, Field(min_length=1, max_length=TAG_LIMIT)]


def _distinct(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


Tags = Annotated[list[Tag], Field(max_length=TAGS_LIMIT), AfterValidator(_distinct)]
