"""`drain`: a backlog of jobs that are all due. How many are run and recorded per second?"""

from __future__ import annotations

from loadtest import flags
from loadtest.cluster.given import GivenCluster
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.curves import trial_charts
from loadtest.jobs import insert_ballast
from loadtest.outcome import Outcome
from loadtest.progress import Progress
from loadtest.session import Where, measure_anywhere
from loadtest.spike import judge, report_usage, workers_started
from loadtest.trial import Trial, TrialPlan, run_trial

EXPECTED_JOBS_A_SECOND = 2000
"""Only for patience."""


def drain(
    jobs: flags.Jobs = 20_000,
    workers: flags.Workers = 4,
    concurrency: flags.Concurrency = 500,
    ballast: flags.Ballast = 0,
    repeat: flags.Repeat = 3,
    out: flags.Out = None,
    api: flags.Api = None,
    database: flags.DatabaseUrl = None,
    api_key: flags.ApiKey = None,
) -> None:
    """The command."""
    outcome = Outcome(
        command="drain",
        title=f"Drain: {jobs:,} no-op jobs due at once, {workers} workers of {concurrency}",
        question="How many jobs are run and recorded per second, leases and run history on?",
        arguments={
            "jobs": jobs,
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
        else:
            outcome.title = f"Drain: {jobs:,} no-op jobs due at once, {cluster.fleet}"
        plan = TrialPlan(offsets=[0.0] * jobs, job_seconds=0.0, expected_seconds=jobs / EXPECTED_JOBS_A_SECOND)
        trials = []
        for run in range(1, repeat + 1):
            progress.say(f"run {run} of {repeat}: {jobs:,} jobs")
            trials.append(run_trial(cluster, plan, progress))
        judge(outcome, trials)
        whole = [trial for trial in trials if trial.starts and trial.complete_at is not None]
        if not whole:
            return
        outcome.figure(
            "jobs per second",
            [drain_rate(trial) for trial in whole],
            "/s",
            meaning="from the first start to the last recorded completion",
        )
        outcome.figure("first start after T", [trial.start_delays[0] for trial in whole], "s")
        outcome.figure("all recorded complete", [trial.complete_seconds for trial in whole], "s")
        report_usage(outcome, whole)
        outcome.charts += trial_charts(whole, ideal=None, ideal_rate=None, note="")

    measure_anywhere(Where(out=out, api=api, database=database, api_key=api_key), ClusterPlan(), outcome, body)


def drain_rate(trial: Trial) -> float:
    """Jobs per second from the first start to the last recorded completion."""
    assert trial.complete_at is not None
    return len(trial.jobs) / (trial.complete_at - trial.origin - trial.start_delays[0])
