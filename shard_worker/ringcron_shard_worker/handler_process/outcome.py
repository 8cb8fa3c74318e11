"""How one call of a handler ended, in the form in which it can be stored.

Invariant: what leaves here can be written to PostgreSQL: text without NUL and lone surrogates, at most ERROR_LIMIT
characters; results as JSON of at most RESULT_LIMIT bytes. No failure is lost because its message cannot be kept.
"""

from __future__ import annotations

import os
import re
import traceback
from dataclasses import asdict, replace
from typing import Any, Final

import orjson

from ringcron.handlers import ERROR_LIMIT, RESULT_LIMIT, Fail
from ringcron.records import record

_MESSAGE_LIMIT: Final = ERROR_LIMIT // 2
_FRAMES: Final = 6
_CAUSES: Final = 3
_LONGEST_SECONDS: Final = 366 * 86400.0
_OWN_FOLDERS: Final = tuple(
    os.path.join(os.path.dirname(os.path.dirname(__file__)), folder) + os.sep
    for folder in ("handler_process", "execution")
)
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


@record(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a call ended.

    `result` is JSON text. `stopped`: it ended because it was asked to, or after it had seen that it was. `died`: its
    process went away under it. `left_behind`: threads or processes of the run go on in the handler process.
    """

    result: bytes | None = None
    error: str | None = None
    retry_after_seconds: float | None = None
    dead: bool = False
    stopped: bool = False
    died: bool = False
    left_behind: bool = False

    def message(self) -> dict[str, Any]:
        """For a frame."""
        return asdict(self) | {"result": None if self.result is None else self.result.decode()}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Ended:
        ended = cls(**message)
        return ended if ended.result is None else replace(ended, result=str(ended.result).encode())


def returned(value: object, *, stopped: bool = False) -> Ended:
    """The handler returned `value`."""
    if value is None:
        return Ended(stopped=stopped)
    try:
        encoded = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        reason = clean_text(f"{error}", limit=_MESSAGE_LIMIT)
        return Ended(error=f"what the handler returned cannot be written as JSON: {reason}", stopped=stopped)
    if len(encoded) > RESULT_LIMIT:
        note = f"the result was left out: {len(encoded)} bytes of JSON, the limit is {RESULT_LIMIT}"
        encoded = orjson.dumps({"note": note})
    return Ended(result=encoded, stopped=stopped)


def raised(error: BaseException, *, stopped: bool = False) -> Ended:
    """The handler raised `error`."""
    if isinstance(error, Fail):
        return Ended(
            error=_message(error, limit=ERROR_LIMIT) or "the handler failed",
            retry_after_seconds=_seconds(error.retry_after_seconds),
            dead=bool(error.dead),
            stopped=stopped,
        )
    return Ended(error=describe(error), stopped=stopped)


def describe(error: BaseException) -> str:
    """Type and message, what caused it, and the last few frames outside of this package."""
    lines = [f"{type(error).__qualname__}: {_message(error)}".removesuffix(": ")]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    for _ in range(_CAUSES):
        if cause is None:
            break
        lines.append(f"caused by {type(cause).__qualname__}: {_message(cause)}".removesuffix(": "))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OWN_FOLDERS)
    ]
    lines += [line.rstrip("\n") for line in traceback.format_list(frames[-_FRAMES:])]
    return clean_text("\n".join(lines))


def clean_text(text: str, *, limit: int = ERROR_LIMIT) -> str:
    """`text` without what PostgreSQL or UTF-8 cannot hold, cut to `limit` characters."""
    if len(text) > limit:
        note = f" … (cut, {len(text)} characters)"
        text = text[: limit - len(note)] + note
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def _message(error: BaseException, *, limit: int = _MESSAGE_LIMIT) -> str:
    try:
        text = str(error)
    except Exception as fault:
        return f"(its message cannot be shown: {type(fault).__name__})"
    return clean_text(text, limit=limit)


def _seconds(value: object) -> float | None:
    """A handler may ask for anything; what is no length of time is not heard."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LONGEST_SECONDS:
        return float(value)
    return None


def _encode(value: object) -> bytes:
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # also a lone surrogate
        return orjson.dumps(_cleaned(value), option=orjson.OPT_NON_STR_KEYS)
    if rb"\u0000" in encoded:  # jsonb refuses NUL
        return orjson.dumps(_cleaned(orjson.loads(encoded)))
    return encoded


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return _UNSTORABLE.sub(_REPLACEMENT, value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(entry) for entry in value]
    return value
