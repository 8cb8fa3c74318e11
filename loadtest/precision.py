"""`precision`: how long after its instant does a lone job on an idle pool start? And a job created due at once?

Lone jobs are stored ahead, at random instants: the workers know of them and wake on time. Jobs of the second kind are
created one by one through the API and are due at once: the bell tells the workers; without it they wait for the poll.
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from loadtest import flags
from loadtest.api_call import ApiConnection
from loadtest.checking import check, occurrence
from loadtest.cluster.given import GivenCluster
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.curves import shares
from loadtest.distributions import Distribution
from loadtest.jobs import insert_ballast
from loadtest.outcome import LineChart, Outcome, Table, number
from loadtest.progress import Progress
from loadtest.runs import read_runs, recorded_starts, written_starts
from loadtest.session import Where, measure_anywhere
from loadtest.spike import judge, workers_started
from loadtest.trial import TrialPlan, run_trial
from ringcron.clock import SystemClock
from ringcron.instants import parse_instant

SETTLE_SECONDS = 3.0


def precision(
    jobs: flags.Jobs = 100,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="Over how many seconds they are spread.")] = 20.0,
    workers: flags.Workers = 4,
    concurrency: flags.Concurrency = 10,
    ballast: flags.Ballast = 100_000,
    repeat: flags.Repeat = 1,
    out: flags.Out = None,
    api: flags.Api = None,
    database: flags.DatabaseUrl = None,
    api_key: flags.ApiKey = None,
) -> None:
    """The command."""
    outcome = Outcome(
        command="precision",
        title=f"Precision: {jobs:,} lone jobs over {seconds:g} s on an idle pool of {workers} workers",
        question="How long after its instant does a lone job start, and how soon one that is created due at once?",
        arguments={
            "jobs": jobs,
            "seconds": seconds,
            "workers": workers,
            "concurrency": concurrency,
            "ballast": ballast,
            "repeat": repeat,
        },
    )

    def body(cluster: OwnCluster | GivenCluster, outcome: Outcome, progress: Progress) -> None:
        insert_ballast(cluster.database, ballast, handler=cluster.handler, progress=progress)
        if isinstance(cluster, OwnCluster):
            cluster.start_workers(workers, concurrency=concurrency)
            outcome.notes += workers_started(cluster)
            time.sleep(SETTLE_SECONDS)
        else:
            outcome.title = f"Precision: {jobs:,} lone jobs over {seconds:g} s, {cluster.fleet}"
        measured: dict[str, list[list[float]]] = {"stored ahead": [], "created due at once": []}
        trials = []
        for run in range(1, repeat + 1):
            progress.say(f"run {run} of {repeat}: {jobs} lone jobs stored ahead")
            offsets = sorted(random.uniform(0, seconds) for _ in range(jobs))
            trials.append(run_trial(cluster, TrialPlan(offsets=offsets, job_seconds=0, expected_seconds=1), progress))
            measured["stored ahead"].append(trials[-1].start_delays)
            progress.say(f"run {run} of {repeat}: {jobs} jobs created due at once")
            measured["created due at once"].append(_created(cluster, outcome, jobs, seconds, progress))
        judge(outcome, trials)
        if isinstance(cluster, OwnCluster):
            cluster.stop_workers()
            cluster.start_api(bell=False)
            cluster.start_workers(workers, concurrency=concurrency, bell="poll")
            time.sleep(SETTLE_SECONDS)
            progress.say(f"without the bell: {jobs} jobs created due at once")
            measured["created due at once, no bell"] = [_created(cluster, outcome, jobs, seconds, progress)]
        _report(outcome, measured)

    measure_anywhere(Where(out=out, api=api, database=database, api_key=api_key), ClusterPlan(), outcome, body)


def _created(
    cluster: OwnCluster | GivenCluster, outcome: Outcome, jobs: int, seconds: float, progress: Progress
) -> list[float]:
    """Create jobs one by one, due at once; the delays of their starts after their due instants, in order."""
    clock = SystemClock()
    offset = cluster.database.clock_offset()
    if cluster.starts is not None:
        cluster.starts.read()
    since = clock.elapsed() + offset
    due: dict[UUID, float] = {}
    scheduled: dict[UUID, float] = {}
    with ApiConnection(cluster.api_url, cluster.api_key) as connection:
        for number_ in range(1, jobs + 1):
            now = datetime.fromtimestamp(clock.elapsed() + offset, UTC)
            body = {"runAt": now.isoformat(), "handler": cluster.handler, "payload": {"seconds": 0}}
            job: dict[str, Any] = connection.call("POST", "/jobs", body, expect=201)
            due[UUID(job["jobId"])] = parse_instant(job["nextRunAt"]).timestamp()
            scheduled[UUID(job["jobId"])] = parse_instant(job["scheduledFor"]).timestamp()
            progress.count("jobs created", number_, jobs)
            time.sleep(random.uniform(0.5, 1.5) * seconds / jobs)
    time.sleep(SETTLE_SECONDS)
    runs = read_runs(cluster.database, since=since)
    starts = written_starts(cluster.starts.read(), offset) if cluster.starts is not None else recorded_starts(runs)
    verdict = check({occurrence(job_id, scheduled[job_id]): at for job_id, at in due.items()}, starts, runs)
    outcome.problems += [f"created due at once: {problem}" for problem in verdict.problems()]
    delays = sorted(start.at - due[start.job_id] for start in starts if start.job_id in due)
    outcome.runs.append({"kind": "created due at once", "counts": verdict.counts(), "startDelay": delays})
    return delays


def _report(outcome: Outcome, measured: dict[str, list[list[float]]]) -> None:
    rows = []
    for kind, runs in measured.items():
        if not all(runs):
            continue
        each = [Distribution.of(run) for run in runs]
        for name, values in (("p50", [one.p50 for one in each]), ("p99", [one.p99 for one in each])):
            outcome.figure(f"{kind}: {name} start delay", [1000 * value for value in values], "ms")
        whole = Distribution.of([delay for run in runs for delay in run])
        cells = (whole.least, whole.p50, whole.p90, whole.p99, whole.greatest)
        rows.append([kind, f"{whole.count:,}", *(number(1000 * value) for value in cells)])
    outcome.tables.append(
        Table(title="Start delay (ms)", columns=("jobs", "count", "least", "p50", "p90", "p99", "greatest"), rows=rows)
    )
    outcome.charts.append(
        LineChart(
            title="Start delay",
            x="start delay (ms)",
            y="share of jobs started (%)",
            series=[
                shares(kind, [1000 * delay for run in runs for delay in run]) for kind, runs in measured.items() if runs
            ],
            note="Of all repetitions together. Further left and steeper is better.",
            log_x=True,
        )
    )
