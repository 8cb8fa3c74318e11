"""JSON as it can be stored and read back, and nothing else.

Two kinds of refusal:

- what is no JSON (NaN and Infinity among it), is no UTF-8, or is deeper than MAX_DEPTH: MalformedJson, with line and
  column;
- JSON that PostgreSQL or a reader cannot hold (U+0000, a lone surrogate, a number without bounds, an integer beyond 64
  bits, which orjson would silently round to a float): a fault with its pointer, so that all of them come at once.

Duplicate member names are allowed; the last one counts, as in jsonb. orjson reads what is sound; only a body that it
refuses, or in which it may have rounded an integer, is read a second time, by the slower reader that can say where.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any, Final

import orjson

from ringcron_api.faults import Fault, pointer_to

MAX_DEPTH: Final = 64
_LEAST_INTEGER: Final = -(2**63)
_ROUNDED_FROM: Final = float(2**63)
_MOST_INTEGER: Final = 2**64 - 1

# Possessive and open-ended, so that no body makes it look twice at a byte.
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|[\[\]{}]|-?Infinity|NaN', re.DOTALL)
_NUMBERS: Final = bytes.maketrans(b"0123456789E", b"0000000000e")
_LONG: Final = b"0" * 19
"""This, 0e0 or 0e+0 is in the text of every number that may be a rounded integer, written with _NUMBERS."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class MalformedJson(Exception):
    """The body is not JSON that is accepted here; line and column count from 1."""

    def __init__(self, detail: str, *, line: int, column: int) -> None:
        self.detail = detail
        self.line = line
        self.column = column
        super().__init__(f"{detail}: line {line} column {column}")


def read_json(body: bytes) -> tuple[Any, list[Fault]]:
    """The value, and what in it cannot be held: the value has null in those places, and no member of such a name."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _read_slowly(body)
    faults = second_look(value, body)
    return _read_slowly(body) if faults is None else (value, faults)


def second_look(value: Any, text: bytes) -> list[Fault] | None:
    """What in a value that orjson has read cannot be held; it then has null in those places. `text`: the JSON of it,
    as it came or as orjson writes it. None: it must be read again, by the slower reader."""
    if b"\\u" not in text and text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        numbers = text.translate(_NUMBERS)
        if _LONG not in numbers and b"0e0" not in numbers and b"0e+0" not in numbers:
            return []
    reading = _Walk()
    reading.walk(value, 1)
    return None if reading.deep or reading.rounded else reading.faults


class _Unheld:
    """Stands in the value for a number that cannot be held."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail


class _Walk:
    """One pass over a value: its faults, and whether it is too deep or holds a float that may be a rounded integer."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.deep = False
        self.rounded = False
        self._path: list[object] = []

    def walk(self, value: Any, depth: int) -> Any:
        """The value with null in the place of what cannot be held."""
        if isinstance(value, str):
            return self._text(value, "")
        if isinstance(value, float):
            self.rounded = self.rounded or abs(value) >= _ROUNDED_FROM
        elif isinstance(value, _Unheld):
            self._fault(value.code, value.detail)
            return None
        elif isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                self.deep = True
                return None
            return self._container(value, depth)
        return value

    def _container(self, value: Any, depth: int) -> Any:
        for step, member in list(value.items() if isinstance(value, dict) else enumerate(value)):
            self._path.append(step)
            if isinstance(step, str) and self._text(step, "its name ") is None:
                del value[step]
            else:
                held = self.walk(member, depth + 1)
                if held is not member:
                    value[step] = held
            self._path.pop()
        return value

    def _text(self, text: str, what: str) -> str | None:
        if "\0" in text:
            self._fault("nul-character", f"{what}holds the character U+0000, which cannot be stored")
            return None
        if not text.isascii() and _SURROGATE.search(text):
            self._fault("lone-surrogate", f"{what}holds a lone surrogate, which is no character")
            return None
        return text

    def _fault(self, code: str, detail: str) -> None:
        self.faults.append(Fault(pointer=_SURROGATE.sub("\ufffd", pointer_to(self._path)), code=code, detail=detail))


def _read_slowly(body: bytes) -> tuple[Any, list[Fault]]:
    text = _decoded(body)
    _refuse_by_token(text)
    try:
        value = json.loads(text, parse_int=_integer, parse_float=_number)
    except json.JSONDecodeError as error:
        detail = error.msg[:1].lower() + error.msg[1:]
        raise MalformedJson(detail, line=error.lineno, column=error.colno) from None
    reading = _Walk()
    return reading.walk(value, 1), reading.faults


def _decoded(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start]
        line, column = _place(before.decode("utf-8", "replace"))
        raise MalformedJson("the body is not UTF-8", line=line, column=column) from None
    if text.startswith("\ufeff"):
        raise MalformedJson("the body begins with a byte order mark", line=1, column=1)
    return text


def _refuse_by_token(text: str) -> None:
    """Refuse what the slower reader would accept or choke on: constants that are no JSON, and depth."""
    depth = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                _refuse(f"it is deeper than {MAX_DEPTH} levels", text, token.start())
        elif mark in "]}":
            depth -= 1
        elif not mark.startswith('"'):
            _refuse(f"{mark} is no JSON", text, token.start())


def _refuse(detail: str, text: str, at: int) -> None:
    line, column = _place(text[:at])
    raise MalformedJson(detail, line=line, column=column)


def _place(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _integer(digits: str) -> Any:
    if len(digits) <= 20:
        value = int(digits)
        if _LEAST_INTEGER <= value <= _MOST_INTEGER:
            return value
    return _Unheld("integer-too-large", "is an integer beyond 64 bits, which readers would round: send it as text")


def _number(digits: str) -> Any:
    value = float(digits)
    return _Unheld("number-too-large", "is a number beyond the range of a double") if isinf(value) else value
