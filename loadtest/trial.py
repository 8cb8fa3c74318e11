"""One trial: jobs put in with their instants, watched until the last is recorded complete, then judged.

    put in ─▶ due ─▶ starts written down ─▶ nothing due or claimed any more ─▶ starts and run rows read ─▶ verdict

Invariant: while it runs the harness costs the cluster next to nothing: it looks at the sizes of the start logs, and
asks the database only when all have started.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from loadtest.checking import Verdict, check, occurrence
from loadtest.cluster.given import BUILTIN
from loadtest.cluster.target import Cluster
from loadtest.distributions import Distribution
from loadtest.jobs import DueJob, due_jobs, insert_jobs
from loadtest.outcome import HeatMap
from loadtest.progress import Progress
from loadtest.runs import RunRow, Started, read_runs, recorded_starts, written_starts
from loadtest.shards import SHORT_SECONDS, ShardSampler, lag_from_claims, lag_from_samples, read_owners
from loadtest.usage import cpu_seconds
from ringcron.clock import SystemClock

LEAD_SECONDS: Final = 3.0
"""Jobs are stored so long before they are due: workers that look once a second know of them by then."""
LEAD_JOBS_A_SECOND: Final = 10_000
LOOK_SECONDS: Final = 0.01
LOOK_SLOWLY_SECONDS: Final = 0.1
PATIENCE: Final = 3.0
"""A trial is given up after so many times what arithmetic says, and a minute."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialPlan:
    """`offsets`: when each job is due, in seconds after T. `expected_seconds`: what arithmetic says it takes."""

    offsets: Sequence[float]
    job_seconds: float
    expected_seconds: float
    slot: int | None = None
    lead_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What happened. Instants are Unix seconds of the database's clock; `origin` is T."""

    plan: TrialPlan
    jobs: Sequence[DueJob]
    origin: float
    starts: Sequence[Started]
    runs: Sequence[RunRow]
    complete_at: float | None
    """When nothing was due or claimed any more; None: it was given up."""
    verdict: Verdict
    lag: HeatMap | None
    postgres_cpu_seconds: float | None
    workers_cpu_seconds: float | None

    @property
    def start_delays(self) -> list[float]:
        """Seconds from each start's due instant, in order."""
        due = {job.id: job.due_at.timestamp() for job in self.jobs}
        return sorted(start.at - due[start.job_id] for start in self.starts if start.job_id in due)

    @property
    def complete_seconds(self) -> float:
        """From T until all were recorded complete; infinite where they never were."""
        return float("inf") if self.complete_at is None else self.complete_at - self.origin

    def document(self) -> dict[str, Any]:
        """For the record: the samples too, in seconds after T, to the tenth of a millisecond."""
        own = {job.id for job in self.jobs}
        runs = [run for run in self.runs if run.job_id in own]
        return {
            "origin": datetime.fromtimestamp(self.origin, UTC).isoformat(),
            "counts": self.verdict.counts(),
            "startDelay": Distribution.of(self.start_delays).document() if self.starts else None,
            "completeSeconds": None if self.complete_at is None else round(self.complete_seconds, 4),
            "postgresCpuSeconds": self.postgres_cpu_seconds,
            "workersCpuSeconds": self.workers_cpu_seconds,
            "startedAt": [round(start.at - self.origin, 4) for start in self.starts],
            "claimedAt": [round(run.claimed_at - self.origin, 4) for run in runs],
            "finishedAt": [round(run.finished_at - self.origin, 4) for run in runs],
            "runsByWorker": _by_worker(runs),
        }


def run_trial(
    cluster: Cluster,
    plan: TrialPlan,
    progress: Progress,
    *,
    stored: Callable[[], None] = lambda: None,
    look: Callable[[float], None] = lambda _: None,
) -> Trial:
    """Run one. `stored` is called when the jobs are in the table and not due yet, `look` at each look, with the seconds
    since T."""
    database = cluster.database
    offset = database.clock_offset()
    if cluster.starts is not None:
        cluster.starts.read()
    now = database.now()
    lead = plan.lead_seconds or LEAD_SECONDS + len(plan.offsets) / LEAD_JOBS_A_SECOND
    origin = now + timedelta(seconds=lead)
    jobs = due_jobs([origin + timedelta(seconds=seconds) for seconds in plan.offsets], created_at=now, slot=plan.slot)
    payload = {"seconds": plan.job_seconds} if plan.job_seconds or cluster.handler == BUILTIN else {}
    insert_jobs(database, jobs, handler=cluster.handler, created_at=now, payload=payload)
    stored()
    owners = read_owners(database, cluster.handler)
    usage = usage_of(cluster)
    watch = _Watch(cluster, plan, progress, origin=origin, offset=offset)
    if plan.expected_seconds > SHORT_SECONDS:
        with ShardSampler(cluster.api_url, cluster.api_key) as sampler:
            complete_at = watch.until_complete(look)
        samples = sampler.samples
    else:
        complete_at, samples = watch.until_complete(look), []
    used = usage_since(cluster, usage)
    t = origin.timestamp()
    runs = read_runs(database, since=now.timestamp())  # from before T: an early claim must be seen
    # Read again: over a long trial the two clocks may have drifted apart.
    offset = (offset + database.clock_offset()) / 2
    if cluster.starts is not None:
        starts = written_starts(cluster.starts.read(), offset)
    else:
        own = {job.id for job in jobs}
        starts = sorted((s for s in recorded_starts(runs) if s.job_id in own), key=lambda start: start.at)
    claimed: dict[Any, float] = {}
    for run in runs:
        claimed.setdefault(run.job_id, run.claimed_at)
    until = max((run.claimed_at for run in runs), default=t) + 1e-3
    lag = (
        lag_from_samples(samples, origin=t - offset, names=list(owners))
        if samples
        else lag_from_claims(jobs, claimed, owners, origin=t, until=until)
    )
    due_at = {occurrence(job.id, job.due_at.timestamp()): job.due_at.timestamp() for job in jobs}
    return Trial(
        plan=plan,
        jobs=jobs,
        origin=t,
        starts=starts,
        runs=runs,
        complete_at=complete_at,
        verdict=check(due_at, starts, runs),
        lag=lag,
        postgres_cpu_seconds=used[0],
        workers_cpu_seconds=used[1],
    )


class _Watch:
    """Waits for the end of a trial."""

    def __init__(
        self, cluster: Cluster, plan: TrialPlan, progress: Progress, *, origin: datetime, offset: float
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._progress = progress
        self._clock = SystemClock()
        self._due_at = origin.timestamp() - offset
        last = origin + timedelta(seconds=max(plan.offsets))
        self._bounds = {"from_at": origin, "until_at": last + timedelta(hours=2)}
        self._give_up_seconds = PATIENCE * (plan.expected_seconds + max(plan.offsets)) + 60
        self._since = origin - timedelta(seconds=1)

    def until_complete(self, look: Callable[[float], None]) -> float | None:
        """When nothing was left, on the database's clock; None where it took too long."""
        expected = len(self._plan.offsets)
        pause = LOOK_SECONDS if self._plan.expected_seconds <= SHORT_SECONDS else LOOK_SLOWLY_SECONDS
        time.sleep(max(0.0, self._due_at - self._clock.elapsed()))
        while (seconds := self._clock.elapsed() - self._due_at) < self._give_up_seconds:
            look(seconds)
            started = self._started()
            self._progress.count("jobs started", min(started, expected), expected, f"T + {seconds:.1f} s")
            if started >= expected:
                at, left = self._cluster.database.run("jobs_left", handler=self._cluster.handler, **self._bounds)[0]
                if not left:
                    return float(at)
            time.sleep(pause)
        return None

    def _started(self) -> int:
        if self._cluster.starts is not None:
            return self._cluster.starts.count()
        found: int = self._cluster.database.value("count_runs", since=self._since)
        return found


def usage_of(cluster: Cluster) -> tuple[float | None, float | None]:
    """CPU seconds of PostgreSQL and of the workers so far."""
    if cluster.postgres_pid is None:
        return None, None
    return cpu_seconds([cluster.postgres_pid]), cpu_seconds(worker.pid for worker in cluster.workers)


def usage_since(cluster: Cluster, before: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    """What they have used since then."""
    now = usage_of(cluster)
    return (
        None if before[0] is None or now[0] is None else now[0] - before[0],
        None if before[1] is None or now[1] is None else now[1] - before[1],
    )


def _by_worker(runs: Sequence[RunRow]) -> dict[str, int]:
    found: dict[str, int] = {}
    for run in runs:
        found[run.worker_id] = found.get(run.worker_id, 0) + 1
    return found
