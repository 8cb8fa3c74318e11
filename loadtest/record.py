"""Write an outcome down and show it: record.json, report.html, one summary, the exit code.

Invariant: all three say the same, and the record says everything the report draws.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table as TextTable

from loadtest.outcome import Chart, Outcome
from loadtest.report import render

CLEAN: Final = 0
FAULTY: Final = 1


def finish(
    outcome: Outcome, out: Path, *, machine: Mapping[str, Any], versions: Mapping[str, Any], console: Console
) -> int:
    """Write `<out>/record.json` and `<out>/report.html`, show the summary, return the exit code."""
    document = record_document(outcome, machine=machine, versions=versions)
    out.mkdir(parents=True, exist_ok=True)
    (out / "record.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "report.html").write_text(render(document), encoding="utf-8")
    show(outcome, console)
    console.print(f"\nrecord  {out / 'record.json'}\nreport  {out / 'report.html'}", highlight=False, soft_wrap=True)
    return FAULTY if outcome.problems else CLEAN


def record_document(outcome: Outcome, *, machine: Mapping[str, Any], versions: Mapping[str, Any]) -> dict[str, Any]:
    """The whole outcome as JSON values."""
    return {
        "command": outcome.command,
        "title": outcome.title,
        "question": outcome.question,
        "arguments": dict(outcome.arguments),
        "machine": dict(machine),
        "versions": dict(versions),
        "clean": not outcome.problems,
        "problems": outcome.problems,
        "notes": outcome.notes,
        "figures": [
            {**dataclasses.asdict(figure), "median": figure.median, "text": figure.text()} for figure in outcome.figures
        ],
        "tables": [dataclasses.asdict(table) for table in outcome.tables],
        "charts": [_chart(chart) for chart in outcome.charts],
        "runs": [dict(run) for run in outcome.runs],
    }


def show(outcome: Outcome, console: Console) -> None:
    """The summary."""
    console.print(f"\n{outcome.title}", style="bold", highlight=False)
    console.print(outcome.question, highlight=False)
    console.print()
    grid = TextTable(box=None, show_header=False, padding=(0, 2, 0, 0))
    for figure in outcome.figures:
        ideal = "" if figure.ideal is None else f"arithmetic: {figure.ideal:,.4g} {figure.unit}"
        grid.add_row(figure.name, figure.text(), ideal or figure.meaning)
    console.print(grid)
    for table in outcome.tables:
        console.print(f"\n{table.title}", highlight=False)
        text = TextTable(box=None, padding=(0, 2, 0, 0), header_style="")
        for index, column in enumerate(table.columns):
            text.add_column(column, justify="left" if index == 0 else "right")
        for row in table.rows:
            text.add_row(*row)
        console.print(text)
    for note in outcome.notes:
        console.print(f"note: {note}", highlight=False)
    for problem in outcome.problems:
        console.print(f"FAULT: {problem}", style="bold red", highlight=False)
    if not outcome.problems:
        judged = any("counts" in run for run in outcome.runs)
        console.print("no duplicates, no early starts, nothing missed" if judged else "no faults", style="green")


def _chart(chart: Chart) -> dict[str, Any]:
    return {"kind": chart.kind, **dataclasses.asdict(chart)}
