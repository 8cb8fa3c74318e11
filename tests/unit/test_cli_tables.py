"""Tables of the command line: aligned by what a terminal shows, cut only there, and without control characters."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest
from rich.text import Text

from ringcron.cli.tables import print_fields, print_table, shown

ROWS = [("日本", "x" * 70, None), ("a", "é\x1b[2J", datetime(2027, 1, 31, 9, 0, 0, 999_999, tzinfo=UTC))]
CLEAN = r"é\x1b[2J"


def test_columns_are_aligned_by_the_width_of_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["ID", "TEXT", "AT"], ROWS, empty="none")
    assert capsys.readouterr().out.splitlines() == [
        f"ID    {'TEXT':<70}  AT",
        f"日本  {'x' * 70}",
        f"a     {CLEAN:<70}  2027-01-31 09:00:00Z",
    ]


def test_nothing_is_said_of_no_rows_but_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["ID"], [], empty="no jobs")
    assert capsys.readouterr() == ("", "no jobs\n")


def test_fields_without_a_value_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"job": "a", "name": None, "tags": (), "next run": "b", "zero": 0})
    assert capsys.readouterr().out.splitlines() == ["job       a", "next run  b", "zero      0"]


def test_a_terminal_cuts_cells_and_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "76")
    print_table(["ID", "TEXT", "AT"], ROWS, empty="none")
    assert [Text.from_ansi(line).plain for line in capsys.readouterr().out.splitlines()] == [
        f"ID    {'TEXT':<60}  AT",
        f"日本  {'x' * 59}…",
        f"a     {CLEAN:<60}  2027-01…",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("a\nb\t\x07", "a\\x0ab\\x09\\x07"),
        ("\u202eevil", "\\x202eevil"),
        (("a", "b"), "a, b"),
        (3, "3"),
    ],
)
def test_values_are_shown_without_what_moves_a_cursor(value: object, text: str) -> None:
    assert shown(value) == text
