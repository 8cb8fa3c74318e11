"""What a soak found, as figures, tables and charts. Pure.

Invariant: lines are drawn from the first second on, slopes are of what came after the warm-up; the table says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from loadtest.distributions import Distribution
from loadtest.outcome import LineChart, Marks, Outcome, Point, Series, Table, number
from loadtest.soak.bounds import Judged
from loadtest.soak.kills import Kill
from loadtest.soak.lines import Lines
from loadtest.soak.sampling import OTHERS, SPARED, TABLES

MARKS: Final = 400
"""So many kills can be told apart on a chart; of more every so many is drawn."""
KINDS: Final = ("workers", "coordinators", "API", "PostgreSQL", "this harness")
MINUTE: Final = 60.0


def tell_slopes(outcome: Outcome, judged: Sequence[Judged], *, warm_up: float) -> None:
    """The table of slopes; what grows is a fault, what is undecided a note."""
    for each in judged:
        if each.verdict == "grows" and each.slope is not None:
            outcome.problems.append(
                f"{each.bound.name} grows by {number(each.slope.per_hour)} {each.bound.unit} an hour (95 %: "
                f"{_range(each)}); {number(each.bound.per_hour)} would be as good as none: {each.bound.why}"
            )
    undecided = [each.bound.name for each in judged if each.verdict == "undecided"]
    if undecided:
        outcome.notes.append(f"Too short to decide about: {', '.join(undecided)}. A longer run can.")
    outcome.tables.append(
        Table(
            title="Growth per hour",
            columns=("what", "unit", "slope", "95 %", "bound", "verdict"),
            rows=[
                [
                    each.bound.name,
                    each.bound.unit,
                    "" if each.slope is None else number(each.slope.per_hour),
                    _range(each),
                    number(each.bound.per_hour),
                    each.verdict,
                ]
                for each in judged
            ],
            note=f"Median of the slopes between all pairs of some thirty windows, after a warm-up of {warm_up:.0f} s. "
            "About zero: the whole range is below the bound. Grows: the whole range is above it, which is a fault.",
        )
    )
    outcome.tables.append(
        Table(
            title="Where the bounds come from",
            columns=("bound an hour", "is as much as"),
            rows=sorted({(f"{number(each.bound.per_hour)} {each.bound.unit}", each.bound.why) for each in judged}),
        )
    )


def tell_kills(outcome: Outcome, kills: Sequence[Kill], coordinator_kills: int) -> None:
    """How often, and how long until what was lost ran again and slots were shared out."""
    outcome.figure("workers killed", len(kills), "", meaning=f"and the leading coordinator {coordinator_kills} times")
    lasts = [kill.last_after for kill in kills if kill.last_after is not None]
    outcome.figure("runs begun again after a kill", sum(kill.began_again for kill in kills), "")
    if lasts:
        found = Distribution.of(lasts)
        meaning = f"last lost run of a kill, p50 of {found.count}; most {number(found.greatest)} s"
        outcome.figure("lost runs began again after", found.p50, "s", meaning=meaning)
    for at_once, name in (
        (False, "slots shared by the others after"),
        (True, "slots shared, killed worker back, after"),
    ):
        shared = [kill.shared_after for kill in kills if kill.shared_after is not None and kill.at_once is at_once]
        if shared:
            found = Distribution.of(shared)
            meaning = f"p50 of {found.count}; most {number(found.greatest)} s; seen by reports every 5 s"
            outcome.figure(name, found.p50, "s", meaning=meaning)


def tell_lines(
    outcome: Outcome, lines: Lines, kills: Sequence[Kill], coordinator_kills: Sequence[float], *, origin: float
) -> None:
    """The charts, with kills marked. `origin`: the begin on the elapsed clock."""
    marks = [
        Marks(name="a worker is killed", at=_thinned([kill.at for kill in kills], origin)),
        Marks(name="the leading coordinator, too", at=_thinned(coordinator_kills, origin), role="plain"),
    ]

    def chart(title: str, y: str, named: Mapping[str, str], note: str = "") -> None:
        series = [Series(name=name, points=_minutes(lines.points(line))) for name, line in named.items()]
        shown = [each for each in series if each.points]
        if shown:
            outcome.charts.append(LineChart(title=title, x="time (min)", y=y, series=shown, marks=marks, note=note))

    chart(
        "Memory by kind of process",
        "MiB (PSS, all processes of the kind)",
        {kind: f"PSS of {kind}" for kind in KINDS},
        "PostgreSQL with its shared buffers, which fill as it goes. A worker comes with its lease guard.",
    )
    chart(
        "Memory that one process has allocated",
        "MiB",
        {
            "a worker, on average": "allocated by one of workers",
            SPARED: f"allocated by {SPARED}",
            "a coordinator": "allocated by one of coordinators",
            "the API": "allocated by API",
        },
        "Without files and shared memory. The spared worker is never killed.",
    )
    chart(
        "Memory that PostgreSQL has allocated",
        "MiB",
        {"all its processes": "allocated by PostgreSQL"},
        "Without shared buffers, which fill, and without autovacuum workers, which come and go.",
    )
    for what in ("threads", "files"):
        kinds = {"a worker": "workers", SPARED: SPARED, "a coordinator": "coordinators", "the API": "API"}
        title = "Threads of a process" if what == "threads" else "Open files of a process"
        chart(title, what, {name: f"{what} of {kind}" for name, kind in kinds.items()})
    chart("Connections to PostgreSQL", "connections", {"all": "connections"})
    chart(
        "Dead rows",
        "rows",
        {name: f"dead rows of {name}" for name in (*TABLES, OTHERS) if _most(lines, f"dead rows of {name}") > 0},
        "As PostgreSQL estimates them. Autovacuum takes them once a partition has 5,000 and 2 % of its rows.",
    )
    chart("Indexes that a run enters and leaves", "MiB", {"due, claimed, quarantined": "size of waiting indexes"})
    chart(
        "Tables",
        "MiB",
        {
            "jobs": "size of jobs",
            "indexes of jobs": "size of indexes of jobs",
            "runs": "size of runs",
            "indexes of runs": "size of indexes of runs",
        },
        "They keep what has ended until retention drops its day, so they grow; bytes a row should not.",
    )
    chart(
        "Bytes a row, with indexes",
        "bytes",
        {name: f"bytes a row of {name}" for name in ("jobs", "runs")},
        "By the rows that PostgreSQL estimates there are.",
    )
    chart(
        "Start delay",
        "s after the instant",
        {"p99 of 5 s": "delay p99", "p50": "delay p50", "lag of the worst shard": "lag"},
        "First starts. At whole minutes all jobs of `* * * * *` are due at once.",
    )
    chart("Starts", "per second", {"first starts": "starts a second"})
    again = [(kill.at - origin, kill.last_after) for kill in kills if kill.last_after is not None]
    if again:
        outcome.charts.append(
            LineChart(
                title="Lost runs began again",
                x="time of the kill (min)",
                y="s after the kill",
                series=[Series(name="the last of the killed worker's runs", points=_minutes(again))],
                note="A lease of 15 s lapses first.",
            )
        )


def tell_sizes(outcome: Outcome, lines: Lines, *, since: float) -> None:
    """First and last values, and the range between, of what was sampled after the warm-up."""
    names = [
        *(f"PSS of {kind}" for kind in KINDS),
        *(f"allocated by {kind}" for kind in (SPARED, "API", "PostgreSQL")),
        "connections",
        "dead rows",
        "size of waiting indexes",
        "bytes a row of jobs",
        "bytes a row of runs",
        "delay p50",
        "delay p99",
        "lag",
    ]
    rows = []
    for name in names:
        values = [value for _, value in lines.points(name, since=since)]
        if values:
            found = Distribution.of(values)
            rows.append([name, *map(number, (values[0], values[-1], found.least, found.p50, found.greatest))])
    note = "Memory and sizes in MiB, delays in seconds."
    columns = ("what", "first", "last", "least", "median", "most")
    outcome.tables.append(Table(title="After the warm-up", columns=columns, rows=rows, note=note))


def document_of(
    counts: Mapping[str, int], judged: Iterable[Judged], kills: Iterable[Kill], *, origin: float
) -> dict[str, Any]:
    """For the record."""
    return {
        "counts": dict(counts),
        "slopes": {
            each.bound.name: {
                "verdict": each.verdict,
                "bound": each.bound.per_hour,
                "unit": each.bound.unit,
                **({} if each.slope is None else dataclasses.asdict(each.slope)),
            }
            for each in judged
        },
        "kills": [{**dataclasses.asdict(kill), "at": round(kill.at - origin, 2)} for kill in kills],
    }


def _range(each: Judged) -> str:
    return "" if each.slope is None else f"{number(each.slope.low)} to {number(each.slope.high)}"


def _minutes(points: Iterable[Point]) -> list[Point]:
    return [(at / MINUTE, value) for at, value in points]


def _thinned(instants: Sequence[float], origin: float) -> list[float]:
    return [(at - origin) / MINUTE for at in instants[:: 1 + len(instants) // MARKS]]


def _most(lines: Lines, name: str) -> float:
    return max((value for _, value in lines.points(name)), default=0.0)
