"""Runs without a worker: what one does when a handler has ended."""

from __future__ import annotations

from datetime import datetime

from ringcron.lifecycle import after_run
from ringcron.models import Claim, JobState, RunOutcome
from ringcron.store.answers import EndedRun
from ringcron.store.claimed import Claimed
from ringcron.store.worker import WorkerStore


async def finish(
    worker: WorkerStore, claim: Claim, outcome: RunOutcome = RunOutcome.SUCCEEDED, *, now: datetime | None = None
) -> JobState:
    """Complete the claim's run, decided on its row as it is now; the state of the job afterwards. It ends at once or
    at `now`, of the database's clock."""
    (row,) = await worker.read_claimed([claim])
    assert isinstance(row, Claimed)
    completion = after_run(row.going, outcome, now=now or claim.decided_until, random=0.5, error="boom")
    ended = EndedRun(
        claim=claim,
        revision=row.revision,
        outcome=outcome,
        error=None,
        result=None,
        started_at=0,
        finished_at=0,
        completion=completion,
    )
    done = await worker.complete_runs([ended])
    assert len(done.written) == 1, done
    return completion.state
