"""Answers as people read them: plain columns, cut at the width of a terminal and whole in a pipe.

Invariant: what others wrote (names, errors, payloads) reaches a terminal without control characters, which could
rewrite what is on it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import typer
from rich.cells import cell_len, set_cell_size

LONGEST_CELL: Final = 60
"""On a terminal, so that a long text does not push the columns behind it out of sight."""
_GAP: Final = "  "


def print_table(headers: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """Rows below their headers, the columns that matter most first; `empty` on standard error where there are none."""
    cells = [[_cut(shown(value), LONGEST_CELL) for value in row] for row in rows]
    if not cells:
        typer.echo(empty, err=True)
        return
    head, *lines = _aligned([list(headers), *cells])
    typer.secho(head, bold=True)
    for line in lines:
        typer.echo(line)


def print_fields(fields: Mapping[str, Any]) -> None:
    """One line for each field that has a value, or one for each element of a list; values are never cut."""
    named = {
        name: [shown(element) for element in value] if isinstance(value, list) else [shown(value)]
        for name, value in fields.items()
    }
    named = {name: lines for name, lines in named.items() if any(lines)}
    width = max(map(cell_len, named))
    for name, (first, *others) in named.items():
        typer.echo(typer.style(set_cell_size(name, width), bold=True) + _GAP + first)
        for line in others:
            typer.echo(" " * width + _GAP + line)


def shown(value: Any) -> str:
    """A value in a cell: instants to the second in UTC, nothing for None."""
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
        case tuple():
            return ", ".join(shown(element) for element in value)
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in str(value))


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = [_GAP.join(map(set_cell_size, row, widths)).rstrip() for row in rows]
    return [_cut(line, shutil.get_terminal_size().columns) for line in lines]


def _cut(text: str, width: int) -> str:
    """The text, on a terminal no wider than that."""
    if not sys.stdout.isatty() or cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"
