"""I10, I11: every tick of the reference enumerator is run once or lies in a skip with a true reason, and nothing else
runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loadtest.chaos.history import History, Job, Run, Skip, Violation

FROM_SCHEDULE = frozenset({"schedule", "catchup", "buffer"})


def every_tick_is_run_or_skipped(history: History) -> Iterator[Violation]:
    """I10: each tick (or one-off) that was due `bound` before the end is run or skipped, never both; a skip counts the
    ticks that it covers; and what it says was the reason was so."""
    for job in history.jobs.values():
        versions = history.versions_of.get(job.job)
        if not versions:
            continue
        # A job that was cancelled while it was due need not have begun what it was due for, however late that was.
        over = next((v.scheduled_for for v in versions if v.state in ("cancelled", "dead", "paused")), float("inf"))
        until = min(history.ended_at - history.settings.bound, over)
        run = set(_run_ticks(history, job))
        skips = history.skips_of.get(job.job, [])
        for tick in _expected(job):
            covered = [skip for skip in skips if skip.first <= tick <= skip.last]
            if tick in run and covered:
                yield Violation(
                    invariant="I10",
                    job=job.job,
                    message=f"the tick {tick} was run and skipped",
                    evidence=tuple(covered),
                )
            elif tick < until and tick not in run and not covered:
                yield Violation(
                    invariant="I10",
                    job=job.job,
                    message=f"the tick {tick} was neither run nor skipped",
                    evidence=tuple(versions[-3:]),
                )
        yield from _skips_are_true(history, job, skips)


def _skips_are_true(history: History, job: Job, skips: list[Skip]) -> Iterator[Violation]:
    for skip in skips:
        covered = [tick for tick in job.ticks if skip.first <= tick <= skip.last]
        if job.ticks and len(covered) != skip.count:
            yield Violation(
                invariant="I10",
                job=job.job,
                message=f"a skip says {skip.count} ticks and covers {len(covered)}",
                evidence=(skip,),
            )
        if skip.reason == "overlap":
            for tick in covered:
                if not _was_going(history, job.job, tick):
                    yield Violation(
                        invariant="I10",
                        job=job.job,
                        message=f"the tick {tick} was skipped for overlap, and nothing was going on",
                        evidence=(skip,),
                    )


def _was_going(history: History, job: str, tick: float) -> bool:
    """Whether an occurrence was going on at the tick (the clock may have said twice that it was then): claimed, or with
    a retry to come, in the database's record."""
    return any(_was_going_at(history, job, tick, at) for at in history.when_said(tick))


def _was_going_at(history: History, job: str, tick: float, at: float) -> bool:
    slack = history.settings.clock_tolerance
    going = False
    for version in history.versions_of.get(job, ()):
        if version.at > at + slack:
            return going or (version.state == "claimed" and version.scheduled_for < tick)
        going = version.state == "claimed" or (version.state == "due" and version.scheduled_for < tick)
    return going


def runs_are_of_ticks(history: History) -> Iterator[Violation]:
    """I11: what the schedule caused is a tick of the reference, in rising order, and no tick succeeds twice."""
    for job in history.jobs.values():
        expected = set(_expected(job))
        firsts: Counter[float] = Counter()
        latest = float("-inf")
        for run in history.runs_of.get(job.job, ()):
            if run.cause not in FROM_SCHEDULE:
                continue
            if run.scheduled_for not in expected:
                yield Violation(
                    invariant="I11",
                    job=job.job,
                    message=f"a run is for {run.scheduled_for}, which is no tick of its schedule",
                    evidence=(run,),
                )
            elif run.scheduled_for < latest:
                yield Violation(
                    invariant="I11",
                    job=job.job,
                    message=f"the tick {run.scheduled_for} was run after {latest}",
                    evidence=(run,),
                )
            latest = max(latest, run.scheduled_for)
            firsts[run.scheduled_for] += run.outcome == "succeeded"
        for tick, count in firsts.items():
            if count > 1:
                yield Violation(
                    invariant="I11", job=job.job, message=f"the tick {tick} succeeded {count} times", evidence=()
                )


def _run_ticks(history: History, job: Job) -> Iterator[float]:
    runs: list[Run] = history.runs_of.get(job.job, [])
    yield from (run.scheduled_for for run in runs)
    versions = history.versions_of.get(job.job, [])
    if versions and versions[-1].state == "claimed":
        yield versions[-1].scheduled_for


def _expected(job: Job) -> tuple[float, ...]:
    return job.ticks if job.run_at is None else (job.run_at,)
