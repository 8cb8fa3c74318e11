"""`recurring`: many jobs that all recur every minute. Does every tick start on time, minute after minute?

Jobs are made through the API, in batches, as a user would; their ticks are known from the schedule alone, and each must
have been run once. A tick that was skipped (overlap, missed) is a fault here.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

import typer

from loadtest import flags
from loadtest.api_call import ApiConnection
from loadtest.checking import Verdict, check, occurrence
from loadtest.cluster.given import GivenCluster
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.cluster.target import Cluster
from loadtest.curves import shares
from loadtest.distributions import Distribution
from loadtest.jobs import insert_ballast
from loadtest.outcome import LineChart, Outcome, Table, number
from loadtest.progress import Progress
from loadtest.runs import Started, read_runs, recorded_starts, written_starts
from loadtest.session import Where, measure_anywhere
from loadtest.spike import report_cpu, workers_started
from loadtest.trial import usage_of, usage_since
from ringcron.clock import SystemClock

MINUTE: Final = timedelta(minutes=1)
BATCH: Final = 5000
READY_SECONDS: Final = 5.0
"""The first tick that counts is so long after the last job was made, at least."""
CREATES_A_SECOND: Final = 2000
"""Only to choose the first minute."""
PATIENCE_SECONDS: Final = 55.0
"""How long after its last tick a run is waited for: then the next would be due."""
PROMISED_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.25


def recurring(
    jobs: flags.Jobs = 10_000,
    minutes: Annotated[int, typer.Option(min=1, max=600, help="For how many ticks.")] = 5,
    workers: flags.Workers = 4,
    concurrency: flags.Concurrency = 500,
    ballast: flags.Ballast = 0,
    out: flags.Out = None,
    api: flags.Api = None,
    database: flags.DatabaseUrl = None,
    api_key: flags.ApiKey = None,
) -> None:
    """The command."""
    outcome = Outcome(
        command="recurring",
        title=f"Recurring: {jobs:,} jobs, all `* * * * *`, for {minutes} minutes, {workers} workers of {concurrency}",
        question="Does every tick start within two seconds of its minute, and none get lost?",
        arguments={
            "jobs": jobs,
            "minutes": minutes,
            "workers": workers,
            "concurrency": concurrency,
            "ballast": ballast,
        },
    )

    def body(cluster: OwnCluster | GivenCluster, outcome: Outcome, progress: Progress) -> None:
        insert_ballast(cluster.database, ballast, handler=cluster.handler, progress=progress)
        if isinstance(cluster, OwnCluster):
            cluster.start_workers(workers, concurrency=concurrency)
            outcome.notes += workers_started(cluster)
        else:
            outcome.title = f"Recurring: {jobs:,} jobs, all `* * * * *`, for {minutes} minutes, {cluster.fleet}"
        now = cluster.database.now()
        first = now.replace(second=0, microsecond=0) + MINUTE
        while (first - now).total_seconds() < READY_SECONDS + jobs / CREATES_A_SECOND:
            first += MINUTE
        ticks = [first + tick * MINUTE for tick in range(minutes)]
        ids = _create(cluster, jobs, ticks, progress)
        before = usage_of(cluster)
        offset = cluster.database.clock_offset()
        _watch(cluster, ids, ticks, offset, progress)
        used = usage_since(cluster, before)
        runs = read_runs(cluster.database, since=now.timestamp())
        offset = (offset + cluster.database.clock_offset()) / 2
        starts = written_starts(cluster.starts.read(), offset) if cluster.starts is not None else recorded_starts(runs)
        due_at = {occurrence(job_id, at.timestamp()): at.timestamp() for job_id in ids for at in ticks}
        verdict = check(due_at, starts, runs)
        _report(outcome, verdict, starts, ticks)
        report_cpu(outcome, [used[0]], [used[1]], "over all minutes")

    measure_anywhere(Where(out=out, api=api, database=database, api_key=api_key), ClusterPlan(), outcome, body)


def _create(cluster: Cluster, count: int, ticks: Sequence[datetime], progress: Progress) -> list[UUID]:
    """Jobs that tick exactly at `ticks`; their ids."""
    job = {
        "schedule": {"cron": "* * * * *", "startAt": _wire(ticks[0]), "endAt": _wire(ticks[-1])},
        "handler": cluster.handler,
        "payload": {} if cluster.own else {"seconds": 0},
    }
    ids: list[UUID] = []
    with ApiConnection(cluster.api_url, cluster.api_key) as connection:
        while len(ids) < count:
            batch = [job] * min(BATCH, count - len(ids))
            answer: dict[str, Any] = connection.call("POST", "/jobs/batch?atomic=true", {"jobs": batch}, expect=201)
            ids += [UUID(result["jobId"]) for result in answer["results"]]
            progress.count("jobs created", len(ids), count)
    return ids


def _watch(cluster: Cluster, ids: Sequence[UUID], ticks: Sequence[datetime], offset: float, progress: Progress) -> None:
    clock = SystemClock()
    if cluster.starts is not None:
        cluster.starts.read()
    end = ticks[-1].timestamp() - offset
    bounds = {"from_at": ticks[0], "until_at": ticks[-1] + timedelta(hours=2), "handler": cluster.handler}
    expected = len(ids) * len(ticks)
    while clock.elapsed() < end + PATIENCE_SECONDS:
        if cluster.starts is not None:
            started = cluster.starts.count()
        else:
            started = cluster.database.value("count_runs", since=ticks[0] - timedelta(seconds=1))
        progress.count("ticks started", min(started, expected), expected)
        if started >= expected and not cluster.database.run("jobs_left", **bounds)[0][1]:
            return
        time.sleep(LOOK_SECONDS)


def _report(outcome: Outcome, verdict: Verdict, starts: Sequence[Started], ticks: Sequence[datetime]) -> None:
    outcome.problems += verdict.problems()
    delays: dict[float, list[float]] = defaultdict(list)
    for start in starts:
        delays[start.scheduled_for].append(start.at - start.scheduled_for)
    each = {tick: sorted(delays[tick.timestamp()]) for tick in ticks if delays[tick.timestamp()]}
    outcome.runs.append(
        {"counts": verdict.counts(), "startDelay": {_wire(tick): found for tick, found in each.items()}}
    )
    if not each:
        return
    every = [delay for found in each.values() for delay in found]
    late = sum(delay > PROMISED_SECONDS for delay in every)
    outcome.figure("ticks expected", verdict.expected, "")
    outcome.figure("ticks run once", verdict.succeeded - len(verdict.duplicates), "")
    outcome.figure("last start after its minute", [found[-1] for found in each.values()], "s", each="minutes")
    outcome.figure("p99 start delay", [Distribution.of(found).p99 for found in each.values()], "s", each="minutes")
    outcome.figure(f"started later than {PROMISED_SECONDS:g} s", late, "ticks")
    outcome.tables.append(
        Table(
            title="Start delay by minute (s)",
            columns=("minute (UTC)", "started", "first", "p50", "p99", "last"),
            rows=[
                [f"{tick:%H:%M}", f"{one.count:,}", *map(number, (one.least, one.p50, one.p99, one.greatest))]
                for tick, one in ((tick, Distribution.of(found)) for tick, found in each.items())
            ],
        )
    )
    outcome.charts.append(
        LineChart(
            title="Start delay, by minute",
            x="start delay (s)",
            y="share of that minute's ticks started (%)",
            series=[shares(f"{tick:%H:%M}", found) for tick, found in list(each.items())[:6]],
            note="The first six minutes." if len(each) > 6 else "",
        )
    )


def _wire(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
