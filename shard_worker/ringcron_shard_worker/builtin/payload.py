"""The payload of a built-in handler: every fault is found and named by its field, then the run fails for good."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import Any, TypeGuard, TypeVar

from ringcron.handlers import Fail

T = TypeVar("T")


class Payload:
    """The fields of a payload. Readers return None for a field that is absent, null or wrong; `check` comes last."""

    def __init__(self, payload: Any, *, fields: Collection[str]) -> None:
        self._faults: list[str] = []
        self._values: dict[str, Any] = {}
        if payload is None:
            return
        if not isinstance(payload, dict):
            self.fault("", f"must be an object with the fields {', '.join(fields)}")
            return
        self._values = payload
        for name in payload:
            if name not in fields:
                near = get_close_matches(name, fields, n=1)
                self.fault(name, "is not known" + (f"; did you mean {near[0]}?" if near else ""))

    def fault(self, name: str, what: str) -> None:
        """Note that a field is wrong."""
        self._faults.append(f"payload{'.' if name else ''}{name} {what}")

    def check(self) -> None:
        """Raise Fail, dead at once, with every fault."""
        if self._faults:
            raise Fail("; ".join(self._faults), dead=True)

    def required(self, name: str) -> None:
        """Note a fault where the field is absent or null."""
        if self._values.get(name) is None:
            self.fault(name, "is required")

    def value(self, name: str) -> Any:
        """The field as it is."""
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        """A string that a program or a header can be given: no NUL."""
        return self._read(name, _is_text, "must be text without NUL")

    def texts(self, name: str) -> list[str] | None:
        """A non-empty list of such strings."""
        return self._read(name, _is_texts, "must be a list of at least one text, without NUL")

    def mapping(self, name: str) -> dict[str, str] | None:
        """An object of such strings."""
        return self._read(name, _is_mapping, "must be an object whose values are text without NUL")

    def flag(self, name: str) -> bool | None:
        """true or false."""
        return self._read(name, _is_flag, "must be true or false")

    def number(self, name: str, *, least: float, most: float) -> float | None:
        """A number in [least, most]; true and false are none."""
        number = self._read(name, _is_number, f"must be a number from {least:g} to {most:g}")
        if number is not None and not least <= number <= most:
            self.fault(name, f"must be a number from {least:g} to {most:g}")
            return None
        return number

    def parsed(self, name: str, parse: Callable[[str], T]) -> T | None:
        """A string that `parse` understands; its ValueError says what is wrong."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.fault(name, str(error))
            return None

    def _read(self, name: str, fits: Callable[[Any], TypeGuard[T]], otherwise: str) -> T | None:
        value = self._values.get(name)
        if value is None:
            return None
        if fits(value):
            return value
        self.fault(name, otherwise)
        return None


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and "\0" not in value


def _is_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and len(value) > 0 and all(_is_text(entry) for entry in value)


def _is_mapping(value: Any) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(_is_text(entry) for entry in (*value, *value.values()))


def _is_flag(value: Any) -> TypeGuard[bool]:
    return isinstance(value, bool)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
