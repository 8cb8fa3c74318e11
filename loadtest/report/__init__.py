"""One self-contained HTML page from a record: no network, no build step, light and dark, any width.

Invariant: the page draws what the record says and computes nothing of its own. Text of the record is text on the page,
never markup.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any, Final

__all__ = ["render"]

_FOLDER: Final = files(__name__)


def render(document: Mapping[str, Any]) -> str:
    """The page for a record document."""
    charts = json.dumps(document["charts"], separators=(",", ":"), ensure_ascii=False)
    return Template(_text("page.html")).substitute(
        title=_escape(f"ringcron loadtest: {document['title']}"),
        style=_text("page.css"),
        script=_text("charts.js"),
        heading=_escape(document["title"]),
        question=_escape(document["question"]),
        command=_escape(_command_line(document)),
        verdict=_verdict(document),
        figures="".join(map(_figure, document["figures"])),
        notes="".join(f"<li>{_escape(note)}</li>" for note in document["notes"]),
        charts="".join(map(_chart, enumerate(document["charts"]))),
        tables="".join(map(_table, document["tables"])),
        machine=_pairs({**document["machine"], **document["versions"]}),
        data=charts.replace("<", "\\u003c"),
    )


def _verdict(document: Mapping[str, Any]) -> str:
    if not document["problems"]:
        judged = any("counts" in run for run in document["runs"])
        sentence = "No duplicates, no early starts, nothing missed." if judged else "No faults."
        return f'<p class="verdict good">{sentence}</p>'
    items = "".join(f"<li>{_escape(problem)}</li>" for problem in document["problems"])
    return f'<div class="verdict bad"><p>This run has faults:</p><ul>{items}</ul></div>'


def _figure(figure: Mapping[str, Any]) -> str:
    ideal = "" if figure["ideal"] is None else f"arithmetic: {figure['ideal']:,.4g} {figure['unit']}. "
    return (
        f'<div class="figure"><dt>{_escape(figure["name"])}</dt><dd>{_escape(figure["text"])}</dd>'
        f"<p>{_escape(ideal + figure['meaning'])}</p></div>"
    )


def _chart(numbered: tuple[int, Mapping[str, Any]]) -> str:
    index, chart = numbered
    return (
        f'<figure class="chart"><figcaption><h2>{_escape(chart["title"])}</h2></figcaption>'
        f'<div class="drawing" data-chart="{index}"></div><p class="note">{_escape(chart["note"])}</p></figure>'
    )


def _table(table: Mapping[str, Any]) -> str:
    head = "".join(f"<th>{_escape(column)}</th>" for column in table["columns"])
    rows = "".join(f"<tr>{''.join(f'<td>{_escape(cell)}</td>' for cell in row)}</tr>" for row in table["rows"])
    note = f'<p class="note">{_escape(table["note"])}</p>' if table["note"] else ""
    return (
        f'<section class="table"><h2>{_escape(table["title"])}</h2><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}</section>"
    )


def _pairs(values: Mapping[str, Any]) -> str:
    return "".join(
        f"<tr><td>{_escape(name)}</td><td>{_escape(_plain(value))}</td></tr>" for name, value in values.items()
    )


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _command_line(document: Mapping[str, Any]) -> str:
    words = ["python -m loadtest", str(document["command"])]
    for name, value in document["arguments"].items():
        if value is True:
            words.append(f"--{name}")
        elif value not in (None, False, ""):
            words.append(f"--{name} {_plain(value)}")
    return " ".join(words)


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _escape(text: object) -> str:
    return html.escape(str(text), quote=True)
