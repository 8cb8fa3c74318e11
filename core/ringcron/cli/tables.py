"""Answers as people read them: plain columns, whole where the output is no terminal.

Invariant: what others wrote (names, errors, payloads) reaches a terminal without control characters, which could
rewrite what is on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE: Final = 10_000
"""Columns of an output that is no terminal: nothing is cut off for a program that reads it."""


def print_table(headers: Iterable[str], rows: Iterable[Iterable[Any]], *, empty: str) -> None:
    """Rows below their headers; `empty` on standard error where there are none. The first column is never cut."""
    cells = [[shown(value) for value in row] for row in rows]
    if not cells:
        typer.echo(empty, err=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, header in enumerate(headers):
        table.add_column(header, no_wrap=True, min_width=max(len(row[0]) for row in cells) if number == 0 else None)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    _print(table)


def print_fields(fields: Mapping[str, Any]) -> None:
    """One line for each field that has a value."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value is not None and value != () and value != "":
            table.add_row(Text(name), Text(shown(value)))
    _print(table)


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


def _print(table: Table) -> None:
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, emoji=False, markup=False, width=WIDE)
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        typer.echo(line.rstrip())
