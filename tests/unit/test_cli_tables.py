"""Tables of the command line: aligned by what a terminal shows, cut only there, and without control characters."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest
from rich.text import Text

from ringcron.cli.job_views import print_runs
from ringcron.cli.tables import print_fields, print_table, shown
from ringcron.client import Run
from ringcron.models import Cause, RunOutcome

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


def test_a_list_has_a_line_for_each_element(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"job": "a", "why dead": ["ValueError: no", "  line\x1b 3"], "empty": []})
    assert capsys.readouterr().out.splitlines() == [
        "job       a",
        "why dead  ValueError: no",
        r"            line\x1b 3",
    ]


def test_of_the_error_of_a_run_the_first_line_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    error = 'ZeroDivisionError: division by zero\n  File "jobs.py", line 3, in divide\n    ~~^~~'
    start = datetime(2027, 1, 31, 9, tzinfo=UTC)
    run = Run(
        run_id="a.1",
        attempt=1,
        scheduled_for=start,
        cause=Cause.SCHEDULE,
        worker_id="w-1",
        lease_generation=1,
        started_at=start,
        finished_at=start,
        outcome=RunOutcome.FAILED,
        error=error,
        result=None,
    )
    print_runs([run])
    out = capsys.readouterr().out
    assert "ZeroDivisionError: division by zero" in out
    assert "~~^~~" not in out


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
