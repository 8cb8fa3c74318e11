"""Why a job has not run yet: one case for each reason (issue 3, item 6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ringcron.explain import Explanation, Facts, Reason, explain
from ringcron.models import Arc, Definition, Job, JobState, RetryPolicy, Slice, WorkerReport
from tests.support.values import INSTANT, job_of, report_of

SECOND = timedelta(seconds=1)
WHOLE_RING = (Slice(handlers=("log",), arcs=(Arc(lo=0, hi=4095),)),)
OWNER = report_of("w-1.00000001", slices=WHOLE_RING, running=10)


def because(job: Job, *, after_seconds: float = 0.0, **facts: Any) -> Explanation:
    """The explanation so many seconds after INSTANT, at which the job is due."""
    workers = facts.pop("workers", (OWNER,))
    return explain(job, Facts(now=INSTANT + after_seconds * SECOND, workers=workers, **facts))


def claimed(**columns: Any) -> Job:
    held = {
        "state": JobState.CLAIMED,
        "attempt": 1,
        "lease_owner": "w-1.00000001",
        "lease_until": INSTANT + 15 * SECOND,
        "lease_generation": 4,
        "claimed_at": INSTANT,
    }
    return job_of(**(held | columns))


def test_not_due_yet() -> None:
    found = because(job_of(), after_seconds=-7205)
    assert found.reason is Reason.NOT_DUE
    assert found.sentence == "It is not due yet: its next run is at 2027-01-01T00:00:00Z, in 2 h 5 s."
    assert found.fields == {"next_run_at": INSTANT, "scheduled_for": INSTANT, "seconds_left": 7205.0}


def test_not_due_yet_for_its_jitter() -> None:
    found = because(job_of(scheduled_for=INSTANT - 60 * SECOND), after_seconds=-30)
    assert found.reason is Reason.NOT_DUE
    assert found.sentence.endswith("in 30 s, its jitter included.")


def test_in_back_off() -> None:
    found = because(job_of(attempt=2), after_seconds=-8, error="HTTP 503")
    assert found.reason is Reason.BACK_OFF
    assert found.sentence == (
        "Attempt 2 of 5 did not succeed (HTTP 503); the next one is at 2027-01-01T00:00:00Z, in 8.0 s."
    )
    assert (found.fields["attempt"], found.fields["max_attempts"], found.fields["error"]) == (2, 5, "HTTP 503")


def test_of_an_error_the_first_line_is_in_the_sentence() -> None:
    error = 'ZeroDivisionError: division by zero\n  File "jobs.py", line 3, in divide\n    ~~^~~'
    waiting = because(job_of(attempt=2), after_seconds=-8, error=error)
    assert " did not succeed (ZeroDivisionError: division by zero); " in waiting.sentence
    dead = because(job_of(state=JobState.DEAD, dead_reason=error))
    assert dead.sentence.endswith("deletes it: ZeroDivisionError: division by zero.")
    assert (waiting.fields["error"], dead.fields["dead_reason"]) == (error, error)


def test_about_to_be_claimed() -> None:
    found = because(job_of(), after_seconds=0.5)
    assert (found.reason, found.sentence) == (Reason.DUE, "It is due and about to be claimed by w-1.00000001.")


def test_due_but_its_slice_lags() -> None:
    found = because(job_of(), after_seconds=90, late_slots=[(7, 3, 90.0), (9, 2, 120.0)])
    assert found.reason is Reason.SLICE_LAGS
    assert found.sentence == (
        "It has been due for 1 min 30 s, and its slice lags: w-1.00000001 has 5 due jobs to claim, the oldest for "
        "2 min, and runs 10 of 10."
    )
    assert (found.fields["slice_due"], found.fields["slice_lag_seconds"], found.fields["late_seconds"]) == (5, 120, 90)


def test_only_the_slots_of_its_slice_count() -> None:
    half = replace(OWNER, slices=(Slice(handlers=("log",), arcs=(Arc(lo=0, hi=7),)),))
    found = because(job_of(), after_seconds=90, late_slots=[(7, 3, 90.0), (9, 2, 120.0)], workers=(half,))
    assert (found.fields["slice_due"], found.fields["slice_lag_seconds"]) == (3, 90.0)


@pytest.mark.parametrize(
    "slices",
    [(), (Slice(handlers=("log",), arcs=(Arc(lo=8, hi=9),)),), (Slice(handlers=("http",), arcs=(Arc(lo=0, hi=9),)),)],
)
def test_nobody_owns_its_slot(slices: tuple[Slice, ...]) -> None:
    found = because(job_of(), after_seconds=3, workers=(replace(OWNER, slices=slices),))
    assert (found.reason, found.fields["slot"]) == (Reason.SLOT_UNOWNED, 7)


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ((), "none runs at all"),
        ((report_of("w-2", handlers=("http",)),), "of 1 that run"),
        ((replace(OWNER, draining=True),), "of 1 that run"),
    ],
)
@pytest.mark.parametrize("after_seconds", [-60, 60])
def test_no_worker_has_its_handler(workers: tuple[WorkerReport, ...], said: str, after_seconds: float) -> None:
    found = because(job_of(), after_seconds=after_seconds, workers=workers)
    assert found.reason is Reason.NO_WORKER
    assert "No worker has its handler 'log'" in found.sentence
    assert said in found.sentence
    assert (found.fields["handler"], found.fields["workers"]) == ("log", len(workers))


def test_quarantined() -> None:
    found = because(job_of(lost=2, attempt=2), after_seconds=5)
    assert found.reason is Reason.QUARANTINED
    assert (found.fields["lost"], found.fields["max_lost"]) == (2, 3)
    strict = replace(job_of(lost=2, attempt=2), definition=replace(job_of().definition, retry=RetryPolicy(max_lost=1)))
    assert "; at 3 it is dead" in because(strict, after_seconds=5).sentence


def test_held_by_a_worker() -> None:
    found = because(claimed(), after_seconds=1, workers=(replace(OWNER, age_seconds=0.8),))
    assert found.reason is Reason.CLAIMED
    assert found.sentence == (
        "w-1.00000001 holds it and runs attempt 1; its lease lasts until 2027-01-01T00:00:15Z unless it is renewed, "
        "and the worker last reported 0.8 s ago."
    )
    assert "was asked to stop it" in because(claimed(cancel_requested=True), after_seconds=1).sentence


def test_held_by_a_worker_that_may_be_gone() -> None:
    silent = because(claimed(), after_seconds=12, workers=(replace(OWNER, age_seconds=12),))
    assert silent.sentence.endswith("renewed, but the worker last reported 12 s ago and may be gone.")
    forgotten = because(claimed(), after_seconds=14, workers=(replace(OWNER, worker_id="w-1.00000002"),))
    assert forgotten.sentence.endswith("renewed, but the worker has not reported lately and may be gone.")


def test_a_change_waits_for_the_run() -> None:
    found = because(claimed(after_current={"trigger": True, "pause": {"reason": None, "by": None}}), after_seconds=1)
    assert found.reason is Reason.CHANGE_WAITS
    assert found.sentence.startswith("A pause and a trigger wait for the end of attempt 1, which w-1.00000001 runs;")
    assert found.fields["waits"] == ["pause", "trigger"]


def test_its_lease_has_lapsed() -> None:
    found = because(claimed(after_current={"cancel": True}), after_seconds=16)
    assert (found.reason, found.fields["lease_owner"]) == (Reason.LEASE_LAPSED, "w-1.00000001")


def test_paused_by_whom_and_why() -> None:
    found = because(job_of(state=JobState.PAUSED, next_run_at=None, pause_reason="the move", paused_by="ops"))
    assert found.reason is Reason.PAUSED
    assert found.sentence == "It was paused by ops (the move); nothing starts until it is resumed."
    assert found.fields == {"paused_by": "ops", "pause_reason": "the move"}
    assert "no reason was given" in because(job_of(state=JobState.PAUSED, next_run_at=None)).sentence


def test_dead_because() -> None:
    found = because(
        job_of(state=JobState.DEAD, next_run_at=None, attempt=5, dead_reason="failed at attempt 5 of 5: boom")
    )
    assert found.reason is Reason.DEAD
    assert found.sentence.endswith("deletes it: failed at attempt 5 of 5: boom.")


def test_ended() -> None:
    assert because(job_of(state=JobState.CANCELLED, next_run_at=None)).reason is Reason.CANCELLED
    once = because(job_of(state=JobState.DONE, next_run_at=None))
    assert (once.reason, once.sentence) == (Reason.DONE, "It was to run once and has run.")
    schedule = {"every": "PT1H", "anchor": "2027-01-01T00:00:00Z", "maxRuns": 1}
    recurring = Definition(handler="log", payload=None, schedule=schedule)
    over = because(job_of(state=JobState.DONE, next_run_at=None, definition=recurring, occurrences=1))
    assert over.sentence.startswith("Its schedule has ended")
