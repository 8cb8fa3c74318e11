"""`recover`: one of two workers is killed (SIGKILL). How long until its jobs run again?

With default settings: nothing is told to anybody; the lease lapses and the other worker takes the jobs back. Each job
is long when it first runs, so that it is running when its worker dies, and short when it runs again.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import typer

from loadtest import flags
from loadtest.checking import check, occurrence
from loadtest.cluster.errors import ClusterError
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.distributions import cumulative
from loadtest.jobs import due_jobs, insert_ballast, insert_jobs
from loadtest.outcome import LineChart, Outcome, Series
from loadtest.progress import Progress
from loadtest.runs import read_runs, written_starts
from loadtest.session import Where, measure
from loadtest.starts import Start
from loadtest.trial import LEAD_SECONDS
from ringcron.clock import SystemClock

PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.02


def recover(
    jobs: flags.Jobs = 20,
    job_seconds: Annotated[float, typer.Option(min=1, help="How long a job takes that is not interrupted.")] = 30.0,
    again_seconds: Annotated[float, typer.Option(min=0, help="How long it takes when it runs again.")] = 0.0,
    concurrency: flags.Concurrency = 100,
    ballast: flags.Ballast = 0,
    repeat: flags.Repeat = 3,
    out: flags.Out = None,
) -> None:
    """The command."""
    outcome = Outcome(
        command="recover",
        title=f"Recover: kill -9 one of two workers that run {jobs} jobs",
        question="How long until the jobs of the dead worker run again, with default settings?",
        arguments={
            "jobs": jobs,
            "job-seconds": job_seconds,
            "again-seconds": again_seconds,
            "concurrency": concurrency,
            "ballast": ballast,
            "repeat": repeat,
        },
    )

    def body(cluster: OwnCluster, outcome: Outcome, progress: Progress) -> None:
        insert_ballast(cluster.database, ballast, handler=cluster.handler, progress=progress)
        payload = {"seconds": job_seconds, "again": again_seconds}
        found: list[list[float]] = []
        for run in range(1, repeat + 1):
            cluster.start_workers(2 - len(cluster.workers), concurrency=concurrency)
            progress.say(f"run {run} of {repeat}: {jobs} jobs of {job_seconds:g} s")
            delays, document, problems = _kill_one(cluster, jobs, payload, progress)
            found.append(delays)
            outcome.runs.append(document)
            outcome.problems += [f"run {run}: {problem}" for problem in problems]
        outcome.figure("first runs again after", [each[0] for each in found], "s", meaning="after the kill")
        outcome.figure("last runs again after", [each[-1] for each in found], "s", meaning="after the kill")
        outcome.figure("jobs that the dead worker had", [len(each) for each in found], "jobs")
        outcome.charts.append(
            LineChart(
                title="Jobs of the killed worker that run again",
                x="time after the kill (s)",
                y="jobs running again (cumulative)",
                series=[
                    Series(name=f"run {number}", points=cumulative(each, 0.0), step=True)
                    for number, each in enumerate(found, 1)
                ],
                note="A job that was lost is claimed alone from then on, one at a time per worker, in a process of its "
                "own (quarantine): that is why they come one after the other.",
            )
        )

    measure(Where(out=out), ClusterPlan(), outcome, body)


def _kill_one(
    cluster: OwnCluster, count: int, payload: dict[str, float], progress: Progress
) -> tuple[list[float], dict[str, Any], list[str]]:
    """One kill: when each job of the dead worker ran again, in order; a document; what went wrong."""
    clock = SystemClock()
    database = cluster.database
    offset = database.clock_offset()
    cluster.starts.read()
    now = database.now()
    due_at = now + timedelta(seconds=LEAD_SECONDS)  # both workers know of them by then, and wake at the same time
    jobs = due_jobs([due_at] * count, created_at=now)
    insert_jobs(database, jobs, handler=cluster.handler, created_at=now, payload=payload)
    starts: list[Start] = []
    deadline = clock.elapsed() + PATIENCE_SECONDS
    while len(starts) < count:
        starts += cluster.starts.read()
        _in_time(clock.elapsed() < deadline, "not all jobs have started")
        time.sleep(LOOK_SECONDS)
    victim = max(cluster.workers, key=lambda worker: sum(start.pid == worker.pid for start in starts))
    stranded = {start.job_id for start in starts if start.pid == victim.pid}
    time.sleep(payload["seconds"] / 4)
    victim.kill()
    killed_at = clock.elapsed()
    cluster.workers.remove(victim)
    progress.say(f"killed {victim.name}, which ran {len(stranded)} of {count} jobs")
    again: dict[UUID, float] = {}
    deadline = clock.elapsed() + PATIENCE_SECONDS + payload["again"] * len(stranded)
    while stranded - again.keys() and clock.elapsed() < deadline:
        fresh = cluster.starts.read()
        starts += fresh
        for start in fresh:
            again.setdefault(start.job_id, start.at - killed_at)
        progress.count("jobs run again", len(again), len(stranded), f"{clock.elapsed() - killed_at:.1f} s")
        time.sleep(LOOK_SECONDS)
    bounds = {"from_at": now, "until_at": now + timedelta(hours=2), "handler": cluster.handler}
    while database.run("jobs_left", **bounds)[0][1] and clock.elapsed() < deadline + payload["seconds"]:
        time.sleep(LOOK_SECONDS)
    starts += cluster.starts.read()
    runs = read_runs(database, since=now.timestamp())
    dues = {occurrence(job.id, job.due_at.timestamp()): job.due_at.timestamp() for job in jobs}
    verdict = check(dues, written_starts(starts, offset), runs)
    problems = verdict.problems()
    if stranded - again.keys():
        problems.append(f"{len(stranded - again.keys())} jobs did not run again within {PATIENCE_SECONDS:g} s")
    elif len(again) > len(stranded):
        problems.append(f"{len(again) - len(stranded)} jobs of the worker that lives ran again")
    delays = sorted(again.values()) or [float("inf")]
    document = {"counts": verdict.counts(), "stranded": len(stranded), "againAfter": [round(d, 3) for d in delays]}
    return delays, document, problems


def _in_time(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ClusterError(f"{otherwise} after {PATIENCE_SECONDS:g} s")
