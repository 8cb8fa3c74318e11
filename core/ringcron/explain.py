"""Why a job has not run yet, in one sentence and in fields. Pure, given the job and what is known of the pool.

Invariant: one reason, the one that is in the way now; what stands in the way only later is not told. For people:
nothing decides by it.

    state       asked in this order
    due         no worker has its handler · not due yet: in back-off, or its tick lies ahead · quarantined · nobody owns
                its slot · its slice lags · about to be claimed
    claimed     its lease has lapsed · a change waits for the run · a worker holds it
    the others  paused · dead · cancelled · done
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from ringcron.bell import SOON_SECONDS
from ringcron.instants import format_instant
from ringcron.models import QUARANTINE_LOSSES, Cause, Job, JobState, WorkerReport

_WAITS: Final = {"pause": "a pause", "trigger": "a trigger", "patch": "a change of its schedule", "cancel": "a cancel"}
_ERROR_SHOWN: Final = 200


class Reason(StrEnum):
    """What is in the way."""

    NO_WORKER = "no-worker"
    BACK_OFF = "back-off"
    NOT_DUE = "not-due"
    QUARANTINED = "quarantined"
    SLOT_UNOWNED = "slot-unowned"
    SLICE_LAGS = "slice-lags"
    DUE = "due"
    LEASE_LAPSED = "lease-lapsed"
    CHANGE_WAITS = "change-waits"
    CLAIMED = "claimed"
    PAUSED = "paused"
    DEAD = "dead"
    CANCELLED = "cancelled"
    DONE = "done"


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What is known beside the job. `now` is the database's.

    `late_slots`: due, unclaimed jobs of its handler, as (slot, how many, seconds that the oldest has waited).
    `error`: of its last run.
    """

    now: datetime
    workers: Sequence[WorkerReport] = ()
    late_slots: Sequence[tuple[int, int, float]] = ()
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """The sentence, and what it is made of: instants, texts and numbers, by their names in Python."""

    reason: Reason
    sentence: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def explain(job: Job, facts: Facts) -> Explanation:
    """Why the job has not run yet, or what is becoming of it."""
    match job.state:
        case JobState.DUE:
            return _due(job, facts)
        case JobState.CLAIMED:
            return _claimed(job, facts)
        case JobState.PAUSED:
            by = "" if job.paused_by is None else f" by {job.paused_by}"
            why = "no reason was given" if job.pause_reason is None else job.pause_reason
            return Explanation(
                reason=Reason.PAUSED,
                sentence=f"It was paused{by} ({why}); nothing starts until it is resumed.",
                fields={"paused_by": job.paused_by, "pause_reason": job.pause_reason},
            )
        case JobState.DEAD:
            return Explanation(
                reason=Reason.DEAD,
                sentence=f"It is dead until a person redrives or deletes it: "
                f"{_first_line(job.dead_reason) or 'nobody knows why'}.",
                fields={"dead_reason": job.dead_reason, "attempt": job.attempt},
            )
        case JobState.CANCELLED:
            return Explanation(reason=Reason.CANCELLED, sentence="It was cancelled: nothing starts any more.")
        case JobState.DONE:
            sentence = "It was to run once and has run."
            if job.definition.schedule is not None:
                sentence = "Its schedule has ended: no tick is left, or it has run as often as maxRuns says."
            return Explanation(reason=Reason.DONE, sentence=sentence, fields={"occurrences": job.occurrences})


def _due(job: Job, facts: Facts) -> Explanation:
    next_run_at, now = job.next_run_at, facts.now
    assert next_run_at is not None
    handler = job.definition.handler
    capable = [worker for worker in facts.workers if handler in worker.handlers and not worker.draining]
    fields: dict[str, Any] = {"next_run_at": next_run_at, "scheduled_for": job.scheduled_for}
    if not capable:
        running = f"of {len(facts.workers)} that run" if facts.workers else "none runs at all"
        return Explanation(
            reason=Reason.NO_WORKER,
            sentence=f"No worker has its handler {handler!r} ({running}), so that nobody claims it.",
            fields={**fields, "handler": handler, "workers": len(facts.workers)},
        )
    if next_run_at > now:
        return _ahead(job, facts, fields)
    late_seconds = (now - next_run_at).total_seconds()
    fields["late_seconds"] = late_seconds
    if job.lost >= QUARANTINE_LOSSES:
        most = max(job.definition.retry.max_lost, QUARANTINE_LOSSES + 1)  # only a loss in quarantine makes it dead
        return Explanation(
            reason=Reason.QUARANTINED,
            sentence=f"It is in quarantine: its worker was lost {job.lost} times in a row, so that a worker claims "
            f"it alone, one such job at a time; at {most} it is dead, however many attempts are left or used up.",
            fields={**fields, "lost": job.lost, "max_lost": most},
        )
    owner = next((worker for worker in capable if _owns(worker, handler, job.slot)), None)
    if owner is None:
        return Explanation(
            reason=Reason.SLOT_UNOWNED,
            sentence=f"It has been due for {_span(late_seconds)}, and no worker owns its slot {job.slot} just now: one "
            "with room takes it.",
            fields={**fields, "slot": job.slot},
        )
    due, lag_seconds = _lag(owner, handler, facts)
    if late_seconds > SOON_SECONDS:
        return Explanation(
            reason=Reason.SLICE_LAGS,
            sentence=f"It has been due for {_span(late_seconds)}, and its slice lags: {owner.worker_id} has {due} due "
            f"jobs to claim, the oldest for {_span(lag_seconds)}, and runs {owner.running} of {owner.capacity}.",
            fields={
                **fields,
                "worker": owner.worker_id,
                "slice_due": due,
                "slice_lag_seconds": lag_seconds,
                "running": owner.running,
                "capacity": owner.capacity,
            },
        )
    return Explanation(
        reason=Reason.DUE,
        sentence=f"It is due and about to be claimed by {owner.worker_id}.",
        fields={**fields, "worker": owner.worker_id},
    )


def _ahead(job: Job, facts: Facts, fields: Mapping[str, Any]) -> Explanation:
    assert job.next_run_at is not None
    seconds_left = (job.next_run_at - facts.now).total_seconds()
    at = f"{format_instant(job.next_run_at)}, in {_span(seconds_left)}"
    fields = {**fields, "seconds_left": seconds_left}
    if job.attempt > 0:
        most = job.definition.retry.max_attempts
        error = _first_line(facts.error) or "no error is known"
        return Explanation(
            reason=Reason.BACK_OFF,
            sentence=f"Attempt {job.attempt} of {most} did not succeed ({error}); the next one is at {at}.",
            fields={**fields, "attempt": job.attempt, "max_attempts": most, "error": facts.error},
        )
    named = "" if job.cause is not Cause.SCHEDULE or job.scheduled_for == job.next_run_at else ", its jitter included"
    return Explanation(
        reason=Reason.NOT_DUE, sentence=f"It is not due yet: its next run is at {at}{named}.", fields=fields
    )


def _claimed(job: Job, facts: Facts) -> Explanation:
    assert job.lease_until is not None
    until = format_instant(job.lease_until)
    fields = {
        "lease_owner": job.lease_owner,
        "lease_until": job.lease_until,
        "attempt": job.attempt,
        "max_attempts": job.definition.retry.max_attempts,
        "claimed_at": job.claimed_at,
    }
    if job.lease_until < facts.now:
        return Explanation(
            reason=Reason.LEASE_LAPSED,
            sentence=f"The lease of {job.lease_owner} lapsed at {until}; the next worker to look takes the job back.",
            fields=fields,
        )
    waits = sorted(job.after_current or ())
    if waits:
        named = " and ".join(_WAITS.get(name, name) for name in waits)
        wait = "waits" if len(waits) == 1 else "wait"
        return Explanation(
            reason=Reason.CHANGE_WAITS,
            sentence=f"{named[0].upper()}{named[1:]} {wait} for the end of attempt {job.attempt}, which "
            f"{job.lease_owner} runs; its lease lasts until {until} unless it is renewed, {_heard_of(job, facts)}.",
            fields={**fields, "waits": waits},
        )
    asked = ", and was asked to stop it" if job.cancel_requested else ""
    return Explanation(
        reason=Reason.CLAIMED,
        sentence=f"{job.lease_owner} holds it and runs attempt {job.attempt}{asked}; its lease lasts until {until} "
        f"unless it is renewed, {_heard_of(job, facts)}.",
        fields={**fields, "cancel_requested": job.cancel_requested},
    )


def _heard_of(job: Job, facts: Facts) -> str:
    """When its worker last reported: the lease alone does not say whether that still lives."""
    owner = next((worker for worker in facts.workers if worker.worker_id == job.lease_owner), None)
    if owner is None:
        return "but the worker has not reported lately and may be gone"
    heard = f"the worker last reported {_span(owner.age_seconds)} ago"
    return f"but {heard} and may be gone" if owner.silent else f"and {heard}"


def _owns(worker: WorkerReport, handler: str, slot: int) -> bool:
    return any(arc.lo <= slot <= arc.hi for held in worker.slices if handler in held.handlers for arc in held.arcs)


def _lag(worker: WorkerReport, handler: str, facts: Facts) -> tuple[int, float]:
    """How many due jobs of the handler lie in the worker's slice, and how many seconds the oldest has waited."""
    mine = [late for late in facts.late_slots if _owns(worker, handler, late[0])]
    return sum(due for _, due, _ in mine), max((seconds for _, _, seconds in mine), default=0.0)


def _first_line(error: str | None) -> str:
    """What an error was, fit for a sentence: causes and frames stand below its first line."""
    lines = (error or "").strip().splitlines() or [""]
    return lines[0][:_ERROR_SHOWN]


def _span(seconds: float) -> str:
    """A length of time for people: the two largest units."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    left = round(seconds)
    parts = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
