"""`soak`: hours at a steady rate, with a worker killed every so often. Does anything grow?

A mix of one-offs, created through the API as it goes, and of jobs that recur every minute. What was to run and has not,
or has run twice or early, is a fault, and so is what surely grows.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from loadtest import flags
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.outcome import Outcome
from loadtest.progress import Progress
from loadtest.session import Where, measure
from loadtest.soak.bounds import bounds_of, judge
from loadtest.soak.campaign import Soak
from loadtest.soak.load import RECURRING_SHARE
from loadtest.soak.slopes import HOUR
from loadtest.soak.telling import document_of, tell_kills, tell_lines, tell_sizes, tell_slopes

DAY: Final = 86400
WARM_UP_SHARE: Final = 0.25
WARM_UP_MOST_SECONDS: Final = 600.0
COORDINATORS: Final = 2


def soak(
    minutes: Annotated[int, typer.Option(min=1, max=100_000, help="How long.")] = 30,
    hours: Annotated[
        float | None, typer.Option(min=0.02, max=1000, help="How long, instead of --minutes.", show_default=False)
    ] = None,
    due_per_second: Annotated[float, typer.Option(min=1, max=5000, help="How many jobs are due per second.")] = 200.0,
    kill_every: Annotated[float, typer.Option(min=0, help="A worker is killed every so many seconds; 0: none.")] = 30.0,
    kill_coordinator_every: Annotated[
        float, typer.Option(min=0, help="The leading coordinator, too, every so many seconds; 0: never.")
    ] = 300.0,
    workers: Annotated[int, typer.Option(min=2, max=200, help="How many worker processes; the first is spared.")] = 4,
    concurrency: flags.Concurrency = 100,
    seed: Annotated[int, typer.Option(help="Decides who is killed and how long jobs take.")] = 1,
    out: flags.Out = None,
) -> None:
    """The command."""
    seconds = minutes * 60.0 if hours is None else hours * HOUR
    long = f"{minutes} minutes" if hours is None else f"{hours:g} hours"
    outcome = Outcome(
        command="soak",
        title=f"Soak: {long} at {due_per_second:g} due jobs a second, a worker killed every {kill_every:g} s",
        question="Does memory, do connections, do dead rows grow, and is anything lost, run twice or early?",
        arguments={
            "minutes": minutes if hours is None else None,
            "hours": hours,
            "due-per-second": due_per_second,
            "kill-every": kill_every,
            "kill-coordinator-every": kill_coordinator_every,
            "workers": workers,
            "concurrency": concurrency,
            "seed": seed,
        },
    )

    def body(cluster: OwnCluster, outcome: Outcome, progress: Progress) -> None:
        cluster.start_workers(workers, concurrency=concurrency)
        run = Soak(
            cluster,
            progress,
            due_per_second=due_per_second,
            kill_every=kill_every,
            kill_coordinator_every=kill_coordinator_every,
            seed=seed,
        )
        run.run(seconds)
        warm_up = min(WARM_UP_MOST_SECONDS, seconds * WARM_UP_SHARE)
        judged = judge(
            bounds_of(
                due_per_second=due_per_second,
                created_per_second=due_per_second * (1 - RECURRING_SHARE),
                workers=workers,
                kills_per_hour=HOUR / kill_every if kill_every else 0.0,
            ),
            run.lines,
            since=warm_up,
        )
        _report(outcome, run)
        tell_slopes(outcome, judged, warm_up=warm_up)
        tell_sizes(outcome, run.lines, since=warm_up)
        killer = run.killer
        tell_lines(outcome, run.lines, killer.kills, killer.coordinator_kills, origin=run.origin)
        outcome.runs.append(document_of(run.ledger.counts, judged, killer.kills, origin=run.origin))

    # Days are dropped as they end, so that a run of days needs the disk of two.
    plan = ClusterPlan(coordinators=COORDINATORS, coordinator={"keep_jobs_seconds": DAY, "keep_runs_seconds": DAY})
    measure(Where(out=out), plan, outcome, body)


def _report(outcome: Outcome, run: Soak) -> None:
    ledger, load, killer = run.ledger, run.load, run.killer
    outcome.problems += [*ledger.problems, *load.failures[:5], *killer.ended[:5], *run.problems]
    left_out = ledger.untold + max(0, len(load.failures) - 5) + max(0, len(killer.ended) - 5)
    if left_out:
        outcome.problems.append(f"and {left_out} faults more")
    outcome.notes += run.notes
    counts = ledger.counts
    outcome.figure("occurrences due", counts["expected"], "", meaning=f"{load.created:,} one-offs, the rest ticks")
    outcome.figure("run once", counts["succeeded"] - counts["duplicates"], "")
    outcome.figure("started again after a loss", counts["repeatedAfterLoss"], "")
    outcome.figure("all ended after the last instant", run.settled_seconds, "s")
    for name, line in (("start delay p50", "delay p50"), ("start delay p99 of 5 s", "delay p99")):
        values = [value for _, value in run.lines.points(line)]
        if values:
            outcome.figure(name, values, "s", each="samples")
    tell_kills(outcome, killer.kills, len(killer.coordinator_kills))
