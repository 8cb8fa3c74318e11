"""What is written of a run that has ended: pure.

Invariant: what becomes of the job is decided by ringcron.lifecycle, from the row as it was read last. A cancel of the
run that was accepted before its end is written is in that row (request_cancel.sql raises the revision): then nothing is
tried again, however the run ended.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from random import random
from typing import Final

from ringcron.lifecycle import Completion, after_run
from ringcron.models import Claim, JobState, RunOutcome
from ringcron.store.answers import EndedRun
from ringcron.store.claimed import Claimed
from ringcron_shard_worker.execution import RunResult

_TRIED_AGAIN: Final = frozenset({RunOutcome.FAILED, RunOutcome.TIMED_OUT, RunOutcome.INTERRUPTED})


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


def decided_again(row: Claimed, ended: EndedRun, now: datetime) -> EndedRun:
    """The same run, decided by its row as it was read again. One that was handed back, its cancel asked for, was
    cancelled; one that had ended keeps its own outcome."""
    outcome = decisive(row, ended.outcome)
    return dataclasses.replace(
        ended,
        revision=row.revision,
        outcome=outcome if ended.outcome is RunOutcome.INTERRUPTED else ended.outcome,
        completion=_completion(row, outcome, now, ended.error, ended.retry_after_seconds, ended.dead),
    )


def decisive(row: Claimed, outcome: RunOutcome) -> RunOutcome:
    """The outcome by which is decided what becomes of the job of a run that ended with `outcome`."""
    return RunOutcome.CANCELLED if row.cancel_requested and outcome in _TRIED_AGAIN else outcome


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
