"""`scale`: what grows with the number of scheduled jobs, and what with the number of workers?

First the table: filled step by step over a year of due times, and at each size claims, the calls of the API and
partition upkeep are timed. Then the fleet: real worker processes, step by step, with their memory, the version of the
ring and how long it took to share the ring out anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from loadtest import flags
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.fleet import grow_fleet, report_fleet
from loadtest.jobs import insert_ballast
from loadtest.latencies import OPERATIONS, Latencies, measure_latencies
from loadtest.outcome import Figure, LineChart, Outcome, Series, Table, number
from loadtest.progress import Progress
from loadtest.session import Where, measure

BYTES_A_JOB: Final = 900
"""Row, indexes and the log of writing them, about; only to refuse what the disk cannot hold."""
SPARE_BYTES: Final = 6 * 1024**3
SUFFIXES: Final = {"k": 1_000, "m": 1_000_000}


def scale(
    jobs: Annotated[str, typer.Option(help="Sizes of the table, rising, like 100k,1M,10M.")] = "100k,1M,10M",
    workers: Annotated[str, typer.Option(help="Sizes of the fleet, rising; empty: none.")] = "1,20,50,100,200",
    samples: Annotated[int, typer.Option(min=20, max=2000, help="How many of each call are timed.")] = 300,
    out: flags.Out = None,
) -> None:
    """The command."""
    sizes, fleet = _sizes(jobs), _sizes(workers)
    outcome = Outcome(
        command="scale",
        title=f"Scale: {jobs} scheduled jobs over a year; {workers or 'no'} workers",
        question="What grows with the number of scheduled jobs, and what with the number of workers?",
        arguments={"jobs": jobs, "workers": workers, "samples": samples},
    )

    def body(cluster: OwnCluster, outcome: Outcome, progress: Progress) -> None:
        found: list[Latencies] = []
        stored = 0
        for step, size in enumerate(sizes, 1):
            free = shutil.disk_usage(cluster.folder).free
            needed = (size - stored) * BYTES_A_JOB + SPARE_BYTES
            if free < needed:
                outcome.notes.append(
                    f"{size:,} jobs were left out: about {needed / 1024**3:.0f} GB of disk are needed and "
                    f"{free / 1024**3:.0f} GB are free in {cluster.folder}."
                )
                break
            progress.say(f"storing {size - stored:,} jobs ({free / 1024**3:.0f} GB of disk free)")
            ids = insert_ballast(cluster.database, size - stored, handler=cluster.handler, progress=progress)
            stored = size
            progress.say("vacuum and checkpoint: what is measured is jobs that lie there, not jobs that have just come")
            cluster.database.run("vacuum_jobs")
            cluster.database.run("checkpoint")
            progress.say(f"timing {', '.join(OPERATIONS)} at {size:,} jobs")
            found.append(measure_latencies(cluster, ids, jobs=size, samples=samples, step=step))
        _report(outcome, found)
        if fleet:
            report_fleet(outcome, grow_fleet(cluster, fleet, outcome, progress))

    measure(Where(out=out), ClusterPlan(), outcome, body)


def _sizes(text: str) -> list[int]:
    """`100k,1M` as numbers."""
    found = []
    for word in filter(None, (part.strip().lower() for part in text.split(","))):
        factor = SUFFIXES.get(word[-1], 1)
        digits = word[:-1] if word[-1] in SUFFIXES else word
        if not digits.isdecimal() or int(digits) == 0:
            raise typer.BadParameter(f"{word!r} is no size; write 20, 100k or 10M")
        found.append(int(digits) * factor)
    if found != sorted(found):
        raise typer.BadParameter(f"{text}: sizes must rise")
    return found


def _report(outcome: Outcome, found: Sequence[Latencies]) -> None:
    if not found:
        return
    for operation in OPERATIONS:
        last = found[-1].of[operation]
        what = "one step of upkeep" if operation == "upkeep" else f"{operation} p99"
        outcome.figure(f"{what} at {found[-1].jobs:,} jobs", last.p99, "ms", meaning=_growth(operation, found))
    outcome.figures.append(
        Figure(name="disk a job", values=[found[-1].bytes_a_job], unit="bytes", meaning="rows and indexes")
    )
    outcome.tables.append(
        Table(
            title="Latency by number of scheduled jobs (ms)",
            columns=("operation", *(f"{one.jobs:,}: {part}" for one in found for part in ("p50", "p99"))),
            rows=[
                [
                    operation,
                    *(number(value) for one in found for value in (one.of[operation].p50, one.of[operation].p99)),
                ]
                for operation in OPERATIONS
            ],
            note="Claims by the worker's own statement, ten at a time, in a quarter of the ring. The other calls go "
            "through the API, one after the other on one connection. Upkeep: one step that carves one more day.",
        )
    )
    if len(found) > 1:
        outcome.charts.append(
            LineChart(
                title="p99 latency by number of scheduled jobs",
                x="scheduled jobs",
                y="p99 (ms)",
                series=[
                    Series(name=operation, points=[(float(one.jobs), one.of[operation].p99) for one in found])
                    for operation in OPERATIONS
                    if operation != "upkeep"
                ],
                log_x=True,
            )
        )
    outcome.runs += [one.document() for one in found]


def _growth(operation: str, found: Sequence[Latencies]) -> str:
    if len(found) < 2:
        return ""
    before, after = found[-2], found[-1]
    ratio = after.of[operation].p99 / before.of[operation].p99
    return f"{number(ratio)} × that at {before.jobs:,}"
