"""`spike`: many jobs due in the same second. When does the last one start, and when are all recorded complete?

The brief's arithmetic stands beside it: jobs × seconds are worker-seconds; so many places clear them in so long, and
whatever a run takes beyond that is the scheduler's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import typer

from loadtest import flags
from loadtest.cluster.given import GivenCluster
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.contention import ALONE, HELPING, compare_helping, report_contention
from loadtest.curves import trial_charts
from loadtest.distributions import percentile
from loadtest.jobs import insert_ballast
from loadtest.outcome import Outcome, Series, number
from loadtest.progress import Progress
from loadtest.session import Where, measure_anywhere
from loadtest.trial import Trial, TrialPlan, run_trial

SLOWER = 10.0
"""How much longer the jobs of a slow worker take."""


def spike(
    jobs: flags.Jobs = 2000,
    workers: flags.Workers = 20,
    job_seconds: flags.JobSeconds = 5.0,
    concurrency: flags.Concurrency = 1,
    ballast: flags.Ballast = 0,
    one_slot: Annotated[bool, typer.Option("--one-slot", help="All jobs in one slot of the ring.")] = False,
    stop_worker: Annotated[
        int, typer.Option(min=0, metavar="N", help="Stop worker N (SIGSTOP) just before T; 0: none.")
    ] = 0,
    slow_worker: Annotated[
        int, typer.Option(min=0, metavar="N", help="Worker N takes ten times as long for each job; 0: none.")
    ] = 0,
    contention: Annotated[
        bool,
        typer.Option("--contention", help="Also without helping, in turns: what do workers wait for in PostgreSQL?"),
    ] = False,
    zookeeper: Annotated[bool, typer.Option(help="Disjoint slices; without: every worker claims anywhere.")] = True,
    repeat: flags.Repeat = 1,
    out: flags.Out = None,
    api: flags.Api = None,
    database: flags.DatabaseUrl = None,
    api_key: flags.ApiKey = None,
) -> None:
    """The command."""
    arguments = {
        "jobs": jobs,
        "workers": workers,
        "job-seconds": job_seconds,
        "concurrency": concurrency,
        "ballast": ballast,
        "one-slot": one_slot,
        "stop-worker": stop_worker or None,
        "slow-worker": slow_worker or None,
        "contention": contention,
        "no-zookeeper": not zookeeper,
        "repeat": repeat,
    }
    outcome = Outcome(
        command="spike",
        title=f"Spike: {jobs:,} jobs of {job_seconds:g} s due at once, {workers} workers of {concurrency}",
        question="When does the last one start, and what does the scheduler add to the arithmetic?",
        arguments=arguments,
    )
    if max(stop_worker, slow_worker) > workers:
        raise typer.BadParameter(f"there are {workers} workers")
    if contention and (api or stop_worker or slow_worker):
        raise typer.BadParameter("--contention is for whole fleets of our own")

    def body(cluster: OwnCluster | GivenCluster, outcome: Outcome, progress: Progress) -> None:
        places = workers * concurrency
        insert_ballast(cluster.database, ballast, handler=cluster.handler, progress=progress)
        if contention and isinstance(cluster, OwnCluster):
            ideal = Ideal(jobs=jobs, job_seconds=job_seconds, places=places)
            plan = _plan(ideal, slot=0 if one_slot else None)
            found = compare_helping(cluster, plan, progress, workers=workers, concurrency=concurrency, repeat=repeat)
            report_spike(outcome, [watched.trial for watched in found[HELPING]], ideal)
            judge(outcome, [watched.trial for watched in found[ALONE]])
            report_contention(outcome, found)
            return
        if isinstance(cluster, OwnCluster):
            slowness = {slow_worker - 1: SLOWER} if slow_worker else {}
            cluster.start_workers(workers, concurrency=concurrency, slowness=slowness)
            outcome.notes += workers_started(cluster)
        else:
            places = cluster.capacity
            outcome.title = f"Spike: {jobs:,} jobs of {job_seconds:g} s due at once, {cluster.fleet}"
        lost = (concurrency if stop_worker else 0) + (concurrency * (1 - 1 / SLOWER) if slow_worker else 0)
        ideal = Ideal(jobs=jobs, job_seconds=job_seconds, places=places - lost)
        plan = _plan(ideal, slot=0 if one_slot else None)
        trials = []
        for run in range(1, repeat + 1):
            progress.say(f"run {run} of {repeat}: {jobs:,} jobs, about {ideal.seconds:.0f} s by arithmetic")
            stopped = cluster.workers[stop_worker - 1] if stop_worker and cluster.workers else None
            trials.append(run_trial(cluster, plan, progress, stored=stopped.pause if stopped else lambda: None))
            if stopped is not None and run < repeat:
                stopped.resume()
                cluster.until_assigned()  # type: ignore[union-attr]
        report_spike(outcome, trials, ideal)

    where = Where(out=out, api=api, database=database, api_key=api_key)
    measure_anywhere(where, ClusterPlan(zookeeper=zookeeper), outcome, body)


class Ideal:
    """The brief's arithmetic: `places` run `jobs` of `job_seconds` in rounds, with no time lost between them."""

    def __init__(self, *, jobs: int, job_seconds: float, places: float) -> None:
        self.jobs = jobs
        self.job_seconds = job_seconds
        self.places = places

    @property
    def seconds(self) -> float:
        """Until all have ended: jobs × seconds / places, in whole rounds where places are whole."""
        if self.places == int(self.places):
            return math.ceil(self.jobs / self.places) * self.job_seconds
        return self.jobs * self.job_seconds / self.places

    @property
    def last_start(self) -> float:
        """When the last one starts."""
        return max(0.0, self.seconds - self.job_seconds)

    @property
    def rate(self) -> float | None:
        """Jobs per second; None where jobs take no time."""
        return self.places / self.job_seconds if self.job_seconds else None

    def series(self) -> Series | None:
        """The line beside the measured one."""
        if not self.job_seconds:
            return None
        places = round(self.places)
        rounds = range(math.ceil(self.jobs / self.places))
        points = [(turn * self.job_seconds, float(min(self.jobs, places * (turn + 1)))) for turn in rounds]
        return Series(name="arithmetic", points=[(0.0, 0.0), *points], role="ideal", step=True)


def _plan(ideal: Ideal, *, slot: int | None) -> TrialPlan:
    return TrialPlan(
        offsets=[0.0] * ideal.jobs, job_seconds=ideal.job_seconds, expected_seconds=ideal.seconds, slot=slot
    )


def report_spike(outcome: Outcome, trials: Sequence[Trial], ideal: Ideal) -> None:
    """Figures, charts and faults of a spike."""
    judge(outcome, trials)
    whole = [trial for trial in trials if trial.starts]
    if not whole:
        return
    delays = [trial.start_delays for trial in whole]
    timed = ideal.job_seconds > 0
    outcome.figure("first start after T", [each[0] for each in delays], "s")
    outcome.figure("median start delay", [percentile(each, 50) for each in delays], "s")
    outcome.figure("p99 start delay", [percentile(each, 99) for each in delays], "s")
    outcome.figure("last start after T", [each[-1] for each in delays], "s", ideal=ideal.last_start if timed else None)
    outcome.figure(
        "all recorded complete",
        [trial.complete_seconds for trial in whole],
        "s",
        ideal=ideal.seconds if timed else None,
    )
    if timed:
        ratios = [trial.complete_seconds / ideal.seconds for trial in whole]
        outcome.figure("measured / arithmetic", ratios, "", meaning=f"{number(ideal.places)} places, no time lost")
    report_usage(outcome, whole)
    outcome.charts += trial_charts(
        whole,
        ideal=ideal.series(),
        ideal_rate=ideal.rate,
        note="Arithmetic: every place takes the next job the moment its last one ends." if timed else "",
    )


def report_usage(outcome: Outcome, trials: Sequence[Trial]) -> None:
    """CPU of trials, where it could be read."""
    report_cpu(
        outcome,
        [trial.postgres_cpu_seconds for trial in trials],
        [trial.workers_cpu_seconds for trial in trials],
        "from storing the jobs to the last one complete",
    )


def report_cpu(
    outcome: Outcome, postgres: Sequence[float | None], workers: Sequence[float | None], meaning: str
) -> None:
    """CPU seconds, where they could be read."""
    for name, values in (("CPU of PostgreSQL", postgres), ("CPU of the workers", workers)):
        read = [value for value in values if value is not None]
        if read:
            outcome.figure(name, read, "s", meaning=meaning)


def judge(outcome: Outcome, trials: Sequence[Trial]) -> None:
    """What went wrong in each, before anything else."""
    for number_, trial in enumerate(trials, 1):
        where = f"run {number_}: " if len(trials) > 1 else ""
        outcome.problems += [where + problem for problem in trial.verdict.problems()]
        if trial.complete_at is None:
            outcome.problems.append(f"{where}not complete when it was given up")
        if trial.verdict.failed:
            outcome.problems.append(f"{where}{trial.verdict.failed} runs failed")
        outcome.runs.append(trial.document())
    repeated = [trial.verdict.repeated for trial in trials]
    if any(repeated):
        outcome.figure("run again after a loss", repeated, "jobs", meaning="at-least-once working: attempt 2")


def workers_started(cluster: OwnCluster) -> list[str]:
    """A sentence about what starting the workers took."""
    each = cluster.worker_start_seconds
    return [f"{len(cluster.workers)} workers started, {sum(each) / len(each):.2f} s each in waves."] if each else []
