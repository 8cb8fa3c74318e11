"""The timeline of a chaos run as one HTML page without a script: leases, runs and faults of each worker over time.

Invariant: pure, and the page needs no network. A lease is a bar from its claim until it was closed or lapsed; the run
within it, as the sink saw it, is the darker bar; what was done to the worker lies behind them.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loadtest.chaos.history import History

PIXELS_A_SECOND: Final = 14.0
WIDEST: Final = 60_000.0
BAR: Final = 5
GAP: Final = 2
LEFT: Final = 110
TOP: Final = 34

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --line: #ddd; --fault: #f6c6c0; --all: #f3e3b5;
  --lease: #a9c6ea; --lost: #e08a2e; --run: #23568f; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --paper: #16181b; --line: #333; --fault: #5a2a26;
  --all: #463c1c; --lease: #34557c; --lost: #b56a1c; --run: #9cc4f3; } }
body { font: 14px system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 16px; }
.scroll { overflow-x: auto; } text { fill: var(--ink); font-size: 11px; } .line { stroke: var(--line); }
.fault { fill: var(--fault); } .all { fill: var(--all); } .lease { fill: var(--lease); } .lost { fill: var(--lost); }
.run { fill: var(--run); } .key { display: inline-block; width: 14px; height: 9px; margin: 0 4px 0 14px; }
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """One lease of one job. `lost`: it was taken back."""

    worker: str
    job: str
    generation: int
    begin: float
    end: float
    lost: bool


def leases_of(history: History) -> list[Lease]:
    """Every lease, by begin."""
    lost = {(run.job, run.generation) for run in history.runs if run.outcome == "lost"}
    leases = []
    for job, versions in history.versions_of.items():
        begun: dict[int, tuple[str, float]] = {}
        for version in versions:
            if version.state == "claimed" and version.owner is not None:
                begun.setdefault(version.generation, (version.owner, version.at))
            elif version.generation in begun:
                owner, at = begun.pop(version.generation)
                leases.append(Lease(owner, job, version.generation, at, version.at, (job, version.generation) in lost))
        leases += [
            Lease(owner, job, generation, at, history.ended_at, lost=False) for generation, (owner, at) in begun.items()
        ]
    return sorted(leases, key=lambda lease: lease.begin)


def draw(history: History, title: str) -> str:
    """The page."""
    leases = leases_of(history)
    begin = min((lease.begin for lease in leases), default=history.ended_at)
    scale = min(PIXELS_A_SECOND, WIDEST / max(1.0, history.ended_at - begin))
    rows: dict[str, list[Lease]] = defaultdict(list)
    for lease in leases:
        rows[lease.worker.rpartition(".")[0]].append(lease)
    runs = {(hit.job, hit.generation): hit for hit in history.hits}
    shapes: list[str] = []
    y = TOP
    for worker in sorted(rows):
        lanes = _lanes(rows[worker])
        height = (max(lane for _, lane in lanes) + 1) * (BAR + GAP) + 10
        shapes += _behind(history, worker, begin, scale, y, height)
        shapes.append(f'<text x="4" y="{y + 14}">{html.escape(worker)}</text>')
        for lease, lane in lanes:
            top = y + 4 + lane * (BAR + GAP)
            said = (
                f"{lease.job} generation {lease.generation} of {lease.worker}, "
                f"{lease.begin - begin:.3f} to {lease.end - begin:.3f} s" + (", taken back" if lease.lost else "")
            )
            kind = "lost" if lease.lost else "lease"
            shapes.append(_bar(kind, lease.begin - begin, lease.end - begin, scale, top, BAR, said))
            hit = runs.get((lease.job, lease.generation))
            if hit is not None and hit.end is not None:
                shapes.append(_bar("run", hit.begin - begin, hit.end - begin, scale, top + 1, BAR - 2, said))
        y += height
    width = LEFT + (history.ended_at - begin) * scale + 20
    grid = "".join(_grid(history.ended_at - begin, scale, y))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{html.escape(title)}</h1><p>"
        + "".join(
            f'<svg class="key"><rect class="{kind}" width="14" height="9"/></svg>{text}'
            for kind, text in (
                ("lease", "lease"),
                ("lost", "lease that was taken back"),
                ("run", "run, as the sink saw it"),
                ("fault", "something was done to this worker"),
                ("all", "something was done to the servers"),
            )
        )
        + f'</p><div class="scroll"><svg width="{width:.0f}" height="{y + 10}">{grid}{"".join(shapes)}</svg></div>'
        "</body></html>\n"
    )


def _lanes(leases: list[Lease]) -> list[tuple[Lease, int]]:
    """Each with the first lane that is free at its begin."""
    free: list[float] = []
    placed = []
    for lease in leases:
        lane = next((number for number, until in enumerate(free) if until <= lease.begin), len(free))
        if lane == len(free):
            free.append(lease.end)
        else:
            free[lane] = lease.end
        placed.append((lease, lane))
    return placed


def _behind(history: History, worker: str, begin: float, scale: float, y: float, height: float) -> Iterator[str]:
    for fault in history.faults:
        of_a_worker = fault.target.startswith("worker-")
        if not of_a_worker or f"{worker}.".startswith(fault.target):
            kind = "fault" if of_a_worker else "all"
            yield _bar(
                kind, max(0.0, fault.begin - begin), fault.end - begin, scale, y, height, f"{fault.name} {fault.target}"
            )


def _bar(kind: str, begin: float, end: float, scale: float, y: float, height: float, said: str) -> str:
    return (
        f'<rect class="{kind}" x="{LEFT + begin * scale:.1f}" y="{y:.0f}" '
        f'width="{max(1.0, (end - begin) * scale):.1f}" height="{height:.0f}"><title>{html.escape(said)}</title></rect>'
    )


def _grid(seconds: float, scale: float, height: float) -> Iterator[str]:
    step = next((step for step in (1, 5, 10, 30, 60, 300) if step * scale >= 60), 600)
    for second in range(0, int(seconds) + 1, step):
        x = LEFT + second * scale
        yield f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="22" y2="{height:.0f}"/>'
        yield f'<text x="{x:.1f}" y="16">{second} s</text>'
