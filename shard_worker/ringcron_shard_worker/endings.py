"""What is written of a run that has ended: pure.

Invariant: what becomes of the job is decided by ringcron.lifecycle, from the row as it was read last.
"""

from __future__ import annotations

from datetime import datetime
from random import random

from ringcron.lifecycle import Completion, after_run
from ringcron.models import Claim, JobState, RunOutcome
from ringcron.store.answers import EndedRun
from ringcron.store.claimed import Claimed
from ringcron_shard_worker.execution import RunResult


def ended_run(row: Claimed, result: RunResult, *, started_at: float, finished_at: float, now: datetime) -> EndedRun:
    """The run of `row` ended with `result`. `started_at`, `finished_at`: elapsed seconds; `now`: the database's."""
    return EndedRun(
        claim=row.claim,
        revision=row.revision,
        outcome=result.outcome,
        error=result.error,
        result=result.result,
        started_at=started_at,
        finished_at=finished_at,
        completion=_completion(row, result.outcome, now, result.error, result.retry_after_seconds, result.dead),
        retry_after_seconds=result.retry_after_seconds,
        dead=result.dead,
    )


def completion_of(row: Claimed, ended: EndedRun, now: datetime) -> Completion:
    """What becomes of the job of a run that ended before its definition was read again as `row`."""
    return _completion(row, ended.outcome, now, ended.error, ended.retry_after_seconds, ended.dead)


def _completion(
    row: Claimed, outcome: RunOutcome, now: datetime, error: str | None, retry_after: float | None, dead: bool
) -> Completion:
    return after_run(
        row.going, outcome, now=now, random=random(), error=error, retry_after_seconds=retry_after, dead=dead
    )


def buried(claim: Claim, revision: int, reason: str, at: float) -> EndedRun:
    """The job goes dead with its reason, unrun, at `at` (elapsed seconds)."""
    completion = Completion(
        state=JobState.DEAD,
        next_run_at=None,
        delay_seconds=0.0,
        scheduled_for=claim.scheduled_for,
        cause=claim.cause,
        attempt=claim.attempt,
        lost=0,
        decided_until=claim.decided_until,
        kept=(),
        dead_reason=reason,
    )
    return EndedRun(
        claim=claim,
        revision=revision,
        outcome=RunOutcome.FAILED,
        error=reason,
        result=None,
        started_at=at,
        finished_at=at,
        completion=completion,
    )
