"""`autoscale`: how late does a day of clustered schedules run under each way to size a pool, and what does it cost?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from loadtest import flags
from loadtest.autoscale.day import Clusters, due_by_second
from loadtest.autoscale.policies import Ahead, Fixed, NextMinute, OnCpu, Policy
from loadtest.autoscale.pool import Day, Rules, simulate
from loadtest.machine import describe_machine
from loadtest.outcome import Bar, BarChart, LineChart, Outcome, Point, Series, Table, number
from loadtest.progress import Progress
from loadtest.record import finish
from loadtest.session import RESULTS, console_for_people

NINE: Final = 9 * 3600
AROUND: Final = (NINE - 600, NINE + 1200)
AFTER_LEAD: Final = 30
"""What the lead allows beside the start of a worker: the scaler's polling and its own delays."""


def autoscale(
    hour: Annotated[int, typer.Option(min=0, help="Jobs due in the first second of each hour by day.")] = 2_000,
    job_seconds: Annotated[int, typer.Option(min=1, max=600, help="How long each runs.")] = 5,
    start_seconds: Annotated[
        int, typer.Option(min=0, max=1800, help="From asking for a worker to its first run.")
    ] = 60,
    most: Annotated[int, typer.Option(min=1, help="No more workers than so many.")] = 250,
    seed: Annotated[int, typer.Option(help="Of the one-offs between the clusters.")] = 1,
    out: flags.Out = None,
) -> None:
    """The command."""
    outcome = Outcome(
        command="autoscale",
        title=f"A simulated day: {hour:,} jobs of {job_seconds} s on the hour, workers that start in {start_seconds} s",
        question="How late do jobs start, and how many worker-hours does it take?",
        arguments={
            "hour": hour,
            "job-seconds": job_seconds,
            "start-seconds": start_seconds,
            "most": most,
            "seed": seed,
        },
        notes=["simulated, second by second: no cluster was started, and one job runs at a time on a worker"],
    )
    rules = Rules(start_seconds=start_seconds, most=most, job_seconds=job_seconds)
    due = due_by_second(Clusters(hour=hour), seed=seed)
    progress = Progress()
    days = []
    for policy in policies(start_seconds):
        progress.say(policy.name)
        days.append(simulate(policy, due, rules))
    describe(outcome, days, due)
    code = finish(
        outcome,
        out or RESULTS / outcome.command,
        machine=describe_machine(Path.cwd()),
        versions={},
        console=console_for_people(),
    )
    raise typer.Exit(code)


def policies(start_seconds: int) -> list[Policy]:
    """Those that are compared."""
    lead = start_seconds + AFTER_LEAD
    return [Fixed(20), Fixed(200), OnCpu(), NextMinute(), Ahead(lead, 60), Ahead(lead, 300)]


def describe(outcome: Outcome, days: Sequence[Day], due: Sequence[int]) -> None:
    """The table and the pictures."""
    rows = []
    for day in days:
        late = day.distribution
        rows.append(
            [
                day.policy,
                f"{late.p50:g}",
                f"{late.p99:g}",
                f"{late.greatest:g}",
                f"{day.late_by_second.get(NINE, 0)}",
                number(day.worker_hours),
                f"{max(day.ready)}",
            ]
        )
        outcome.runs.append({"policy": day.policy, "lateness": late.document(), "workerHours": day.worker_hours})
    outcome.tables.append(
        Table(
            title=f"A day of {sum(due):,} jobs",
            columns=("policy", "late p50 (s)", "p99 (s)", "worst (s)", "at 09:00 (s)", "worker-hours", "most workers"),
            rows=rows,
            note="Late: from the instant that a job was due to its start. At 09:00: the last of that second's jobs.",
        )
    )
    first, last = AROUND
    outcome.charts += [
        LineChart(
            title="Workers that are ready around 09:00",
            x="minutes after 09:00",
            y="workers",
            series=[
                Series(name=day.policy, points=_points(day.ready, first, last), step=True, role="plain") for day in days
            ],
        ),
        BarChart(
            title="How late the last job of 09:00:00 starts",
            x="seconds",
            bars=[Bar(name=day.policy, value=float(day.late_by_second.get(NINE, 0))) for day in days],
        ),
        BarChart(
            title="What a day costs",
            x="worker-hours",
            bars=[Bar(name=day.policy, value=day.worker_hours) for day in days],
        ),
    ]


def _points(values: Sequence[int], first: int, last: int) -> list[Point]:
    """Where a line changes, in minutes after 09:00."""
    return [
        ((second - NINE) / 60, float(values[second]))
        for second in range(first, last)
        if second == first or values[second] != values[second - 1] or second == last - 1
    ]
