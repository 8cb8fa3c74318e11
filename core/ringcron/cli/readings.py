"""What the texts of flags mean: durations, instants, payloads, ids. Each says what to write where it cannot be read."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

import typer

from ringcron.client.parameters import id_in_path
from ringcron.durations import parse_duration
from ringcron.instants import parse_instant

_PLAIN: Final = re.compile(r"(?:\d+(?:\.\d{1,6})?(?:ms|s|m|h|d|w))+", re.ASCII)
_PART: Final = re.compile(r"(\d+)(?:\.(\d{1,6}))?(ms|s|m|h|d|w)", re.ASCII)
_MICROSECONDS: Final = {
    "ms": 10**3,
    "s": 10**6,
    "m": 60 * 10**6,
    "h": 3600 * 10**6,
    "d": 86400 * 10**6,
    "w": 604800 * 10**6,
}


def duration(text: str) -> timedelta:
    """`3s`, `1h30m`, `250ms`, or ISO 8601: `PT15M`."""
    if _PLAIN.fullmatch(text):
        microseconds = sum(
            (int(whole) * 10**6 + int(f"{part:0<6}")) * _MICROSECONDS[unit] // 10**6
            for whole, part, unit in _PART.findall(text)
        )
        try:
            return timedelta(microseconds=microseconds)
        except OverflowError:
            raise typer.BadParameter("is longer than anybody can wait") from None
    try:
        return parse_duration(text)
    except ValueError:
        raise typer.BadParameter("must be a duration such as 3s, 15m, 1h30m or PT15M") from None


def instant(text: str) -> datetime:
    """RFC 3339 with an offset."""
    try:
        return parse_instant(text)
    except ValueError as fault:
        raise typer.BadParameter(str(fault)) from None


def payload(text: str) -> Any:
    """JSON; or the JSON in a file, as @file; @- is standard input."""
    source = ""
    if text.startswith("@"):
        source, text = _contents(text[1:])
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise typer.BadParameter(f"{source}is nested too deeply") from None
    except ValueError as fault:
        advice = "" if source else """; a text is written '"text"', the contents of a file @file"""
        raise typer.BadParameter(f"{source}is no JSON: {fault}{advice}") from None


def job_id(text: str) -> str:
    """The id of a job."""
    try:
        return id_in_path(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no id of a job; ringcron job list shows them") from None


def _contents(name: str) -> tuple[str, str]:
    """How to name a file in a fault, and its contents."""
    try:
        if name == "-":
            return "standard input ", sys.stdin.read()
        return f"{name} ", Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{name} is no UTF-8 text") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
