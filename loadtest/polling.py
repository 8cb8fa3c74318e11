"""`polling`: do disjoint slices pay? The same claimers on the same backlog, with slices and without.

Without slices every claimer asks for the oldest jobs anywhere, and SKIP LOCKED keeps them apart; with slices each asks
within its own arc of the ring. Claims only: nothing is run, so that nothing but claiming is measured.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

import typer

from loadtest import flags
from loadtest.claimers import Claimed, ClaimPlan, claim_all
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.distributions import Distribution, cumulative
from loadtest.jobs import due_jobs, insert_ballast, insert_jobs
from loadtest.load_client import interleaved
from loadtest.outcome import Bar, BarChart, LineChart, Outcome, Series, Table, number
from loadtest.progress import Progress
from loadtest.session import Where, measure
from ringcron.slots import SLOT_COUNT

PROCESSES: Final = 4
SLICES, SHARED = "disjoint slices", "shared polling"


def polling(
    jobs: flags.Jobs = 60_000,
    claimers: Annotated[int, typer.Option(min=1, max=400, help="How many connections claim at once.")] = 64,
    batch: Annotated[int, typer.Option(min=1, max=500, help="Most jobs that one claim takes.")] = 50,
    ballast: flags.Ballast = 100_000,
    repeat: flags.Repeat = 3,
    out: flags.Out = None,
) -> None:
    """The command."""
    outcome = Outcome(
        command="polling",
        title=f"Polling: {claimers} claimers of batches of {batch} on {jobs:,} due jobs, with slices and without",
        question="How many claims a second, each claimer in its own slice, against all of them anywhere?",
        arguments={"jobs": jobs, "claimers": claimers, "batch": batch, "ballast": ballast, "repeat": repeat},
    )

    def body(cluster: OwnCluster, outcome: Outcome, progress: Progress) -> None:
        insert_ballast(cluster.database, ballast, handler=cluster.handler, progress=progress)
        measured: dict[str, list[list[Claimed]]] = {SLICES: [], SHARED: []}
        for variant in interleaved([SLICES, SHARED], repeat):
            progress.say(f"{variant}: {jobs:,} due jobs")
            now = cluster.database.now()
            backlog = due_jobs([now - timedelta(seconds=1)] * jobs, created_at=now)
            insert_jobs(cluster.database, backlog, handler=cluster.handler, created_at=now, payload={})
            cluster.database.run("analyze_jobs")
            plans = [
                ClaimPlan(
                    url=cluster.database_url,
                    name=f"claimer-{index}",
                    arc=_arc(index, claimers) if variant == SLICES else (0, SLOT_COUNT - 1),
                    handler=cluster.handler,
                    batch=batch,
                    most=100 * jobs,
                )
                for index in range(claimers)
            ]
            found = claim_all(plans, processes=PROCESSES)
            measured[variant].append(found)
            ids = [job_id for claimed in found for job_id in claimed.ids]
            if len(ids) != len(set(ids)):
                outcome.problems.append(f"{variant}: {len(ids) - len(set(ids))} jobs were claimed twice")
            if set(ids) != {job.id.bytes for job in backlog}:
                outcome.problems.append(f"{variant}: {jobs - len(set(ids))} jobs were not claimed")
        _report(outcome, measured)

    measure(Where(out=out), ClusterPlan(zookeeper=True, api=False), outcome, body)


def _arc(index: int, claimers: int) -> tuple[int, int]:
    return index * SLOT_COUNT // claimers, (index + 1) * SLOT_COUNT // claimers - 1


def _report(outcome: Outcome, measured: dict[str, list[list[Claimed]]]) -> None:
    rates = {variant: [_rate(found) for found in runs] for variant, runs in measured.items()}
    for variant, values in rates.items():
        outcome.figure(f"claimed per second, {variant}", values, "jobs/s")
    outcome.figure(
        "slices / shared", [a / b for a, b in zip(rates[SLICES], rates[SHARED], strict=True)], "", meaning="claims/s"
    )
    rows, series = [], []
    for variant, runs in measured.items():
        took = Distribution.of([1000 * each for found in runs for one in found for _, each, _ in one.claims])
        rows.append([variant, f"{took.count:,}", *map(number, (took.p50, took.p90, took.p99, took.greatest))])
        claims = [claim for one in runs[-1] for claim in one.claims]
        origin = min(began for began, _, _ in claims)
        instants = [began + each for began, each, jobs in claims for _ in range(jobs)]
        series.append(Series(name=variant, points=cumulative(instants, origin)))
        outcome.runs.append({"variant": variant, "rates": rates[variant], "claimMilliseconds": took.document()})
    outcome.tables.append(
        Table(title="One claim (ms)", columns=("variant", "claims", "p50", "p90", "p99", "greatest"), rows=rows)
    )
    outcome.charts.append(
        BarChart(
            title="Jobs claimed per second",
            x="jobs per second",
            bars=[
                Bar(
                    name=figure.name.partition(", ")[2],
                    value=figure.median,
                    low=min(figure.values),
                    high=max(figure.values),
                )
                for figure in outcome.figures
                if ", " in figure.name
            ],
            note="Bars are medians, lines the range.",
        )
    )
    outcome.charts.append(
        LineChart(
            title="A backlog being claimed",
            x="time (s)",
            y="jobs claimed (cumulative)",
            series=series,
            note="Of the last repetition.",
        )
    )


def _rate(found: list[Claimed]) -> float:
    """Jobs per second from the first claim's beginning to the last one that brought something."""
    claims = [claim for one in found for claim in one.claims]
    ended = max(began + took for began, took, jobs in claims if jobs)
    return sum(jobs for _, _, jobs in claims) / (ended - min(began for began, _, _ in claims))
