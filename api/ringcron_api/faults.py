"""What is wrong with a request, all of it at once, each fault with its place.

Invariant: a fault names its place by a JSON pointer (RFC 6901) and its kind by a code from a closed list, so that a
program can act on it; its detail is a sentence for people that follows the name of the field: "must be …".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal

from pydantic_core import ErrorDetails

Place = Literal["body", "query", "header"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One fault. In a query or a header the pointer names it: /limit."""

    pointer: str
    code: str
    detail: str
    place: Place = "body"

    def wire(self) -> dict[str, str]:
        """As it stands in `errors`; `in` only where it is not the body."""
        where = {} if self.place == "body" else {"in": self.place}
        return {"pointer": self.pointer, "code": self.code, "detail": self.detail, **where}


class ValidationFailed(Exception):
    """The request is well-formed and says something that cannot be accepted."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = _first_of_each_place(faults)
        super().__init__(f"{len(self.faults)} faults in the request")


def pointer_to(steps: Iterable[object]) -> str:
    """The JSON pointer of a path of member names and indices."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


_LEAST_LIKENESS: Final = 0.7
"""Below it, names that have little in common would be proposed: retry for every."""
_SLIPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("delay", "in", "at", "when"), "runAt"),
    **dict.fromkeys(("args", "data", "params"), "payload"),
}
"""What callers write for a name that does not look like it."""


def nearest(name: str, known: Collection[str], *, what: str, inner: Iterable[str] = ()) -> str:
    """The detail of a fault about a name that is not known. `inner`: names one object further in, as retry.maxLost."""
    meant = _meant(name[:64], known, inner)
    advice = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}" if known else "there is none"
    return f"is not a known {what}: {advice}"


def _meant(name: str, known: Collection[str], inner: Iterable[str]) -> str | None:
    plain = _plain(name)
    for path in inner:
        if _plain(path.rpartition(".")[2]) == plain:
            return path
    if _SLIPS.get(plain) in known:
        return _SLIPS[plain]
    candidates = {_plain(candidate): candidate for candidate in known}
    close = get_close_matches(plain, candidates, n=1, cutoff=_LEAST_LIKENESS)
    return candidates[close[0]] if close else None


def _plain(name: str) -> str:
    """Alike however the words of a name are joined: on_conflict and onConflict."""
    return name.replace("_", "").replace("-", "").lower()


_CODES: Final[Mapping[str, str]] = {
    "missing": "required",
    "extra_forbidden": "unknown-field",
    "string_too_short": "out-of-range",
    "string_too_long": "out-of-range",
    "too_long": "out-of-range",
    "greater_than_equal": "out-of-range",
    "less_than_equal": "out-of-range",
}
_DETAILS: Final[Mapping[str, str]] = {
    "missing": "is required",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "model_type": "must be an object",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} elements",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "string_unicode": "holds a lone surrogate, which is no character",
}


Names = Mapping[tuple[object, ...], Collection[str]]
"""The names that each object of a document may have, by the path of the object."""


def faults_from(errors: Iterable[ErrorDetails], known: Names, place: Place) -> list[Fault]:
    """What pydantic found."""
    return [_fault_from(error, known, place) for error in errors]


def _fault_from(error: ErrorDetails, known: Names, place: Place) -> Fault:
    kind, path = error["type"], error["loc"]
    context: dict[str, Any] = error.get("ctx", {})
    if kind == "extra_forbidden":
        what = "field" if place == "body" else "parameter"
        detail = nearest(str(path[-1]), known.get(path[:-1], ()), what=what, inner=_names_further_in(path[:-1], known))
        return Fault(pointer=pointer_to(path), code=f"unknown-{what}", detail=detail, place=place)
    code = _CODES.get(kind) or ("type" if kind.endswith("_type") else kind if kind in _OWN_CODES else "invalid")
    detail = _DETAILS[kind].format(**context) if kind in _DETAILS else error["msg"]
    return Fault(pointer=pointer_to(path), code=code, detail=detail, place=place)


def _names_further_in(path: tuple[object, ...], known: Names) -> list[str]:
    """The names of the objects in the object at `path`, as retry.maxLost."""
    return [f"{at[-1]}.{name}" for at, names in known.items() if at and at[:-1] == path for name in names]


_OWN_CODES: Final = frozenset({"type", "invalid", "out-of-range"})
"""Codes that our own validators raise as pydantic's error type."""


def _first_of_each_place(faults: Sequence[Fault]) -> list[Fault]:
    """One fault for each place: what is not a number needs no second fault that it is too small."""
    kept: dict[tuple[Place, str], Fault] = {}
    for fault in faults:
        kept.setdefault((fault.place, fault.pointer), fault)
    return list(kept.values())
