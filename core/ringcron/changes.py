"""What a person may do to a job: pause, resume, trigger, redrive, patch, cancel after the current run.

Pure decisions over the row version that the caller has locked; contract.md §5 is the table. Invariants: every tick
that a change passes over lies in exactly one skip; a live lease is never touched: what is asked of a claimed job waits
in `after_current`, and the revision goes up, so that its worker decides again; a lapsed lease is reaped first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ringcron.errors import JobAlreadyClaimed, ScheduleError, WrongState
from ringcron.going import first_run_at
from ringcron.models import PARKED, QUARANTINE_LOSSES, Cause, Definition, Job, JobState, Skip, SkipReason
from ringcron.schedule import Schedule, parse_schedule
from ringcron.undecided import given_up, ticks_passed, undecided_since, waiting_ticks

_PARKED_STATES = frozenset({JobState.PAUSED, JobState.DEAD})


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The row after a change. `job.next_run_at` is never None here; a due row's never goes below the database's now.

    `waits`: the change takes effect when the current run has ended (202). `reaped`: the lapsed lease of the row that
    was locked is recorded as a run `lost`. `released`: key and tags are given up.
    """

    job: Job
    skips: tuple[Skip, ...] = ()
    waits: bool = False
    reaped: bool = False
    released: bool = False


def followed_by(first: Change, second: Change) -> Change:
    """Both as one. `second` was decided on the job that `first` left."""
    return Change(
        job=second.job,
        skips=first.skips + second.skips,
        waits=first.waits or second.waits,
        reaped=first.reaped or second.reaped,
        released=first.released or second.released,
    )


def reap_first(job: Job, now: datetime) -> tuple[Job, bool]:
    """The job without its lapsed lease, as the reaper leaves it (reap_leases.sql), and whether it had one."""
    if job.state is not JobState.CLAIMED or job.lease_until is None or job.lease_until >= now:
        return job, False
    waiting = dict(job.after_current or {})
    pause = waiting.pop("pause", None)
    alone, lost = job.lost >= QUARANTINE_LOSSES, job.lost + 1
    job = dataclasses.replace(job, lost=lost, lease_owner=None, lease_until=None, claimed_at=None)
    if "cancel" in waiting or (job.cancel_requested and job.definition.schedule is None):
        return dataclasses.replace(job, state=JobState.CANCELLED, next_run_at=now, after_current=None), True
    if alone and lost >= job.definition.retry.max_lost:
        reason = f"its worker was lost {lost} times in a row, the last time while it ran nothing else"
        dead = dataclasses.replace(job, state=JobState.DEAD, next_run_at=PARKED, dead_reason=reason, after_current=None)
        return dead, True
    job = dataclasses.replace(job, state=JobState.DUE, next_run_at=now, after_current=waiting or None)
    if pause is not None:
        job = dataclasses.replace(
            job, state=JobState.PAUSED, next_run_at=PARKED, pause_reason=pause["reason"], paused_by=pause["by"]
        )
    return job, True


def pause(job: Job, now: datetime, *, reason: str | None, by: str | None) -> Change:
    """Raises WrongState where nothing could be paused any more."""
    job, reaped = reap_first(job, now)
    match job.state:
        case JobState.CLAIMED:
            asked = {"reason": reason, "by": by}
            return Change(job=_later(job, now, pause=asked), waits=True)
        case JobState.DUE | JobState.PAUSED:
            paused = _changed(
                job,
                now,
                state=JobState.PAUSED,
                next_run_at=PARKED,
                pause_reason=reason,
                paused_by=by,
                after_current=_wishes(job, pause=None),
            )
            return Change(job=paused, reaped=reaped)
    raise WrongState(f"a job that is {job.state} cannot be paused", state=job.state)


def resume(job: Job, now: datetime) -> Change:
    """Where the job is not paused nothing changes, but a pause that waits for the current run is taken back."""
    if job.state is not JobState.PAUSED:
        if job.state in (JobState.CLAIMED, JobState.DUE) and job.after_current and "pause" in job.after_current:
            return Change(job=_later(job, now, pause=None))
        if job.state in (JobState.CLAIMED, JobState.DUE):
            return Change(job=_with_next(job))
        raise WrongState(f"a job that is {job.state} cannot be resumed", state=job.state)
    schedule = _schedule(job)
    if schedule is None:
        instant = job.scheduled_for if job.attempt == 0 else now
        return Change(job=_due(job, now, next_run_at=first_run_at(job.id, job.definition, instant, now)))
    skips = passed(job, now, SkipReason.PAUSED)
    if job.cause is not Cause.SCHEDULE or job.attempt > 0:
        # What it was waiting with is decided: no claim may ask again whether it was missed.
        cause = Cause.CATCHUP if job.cause is Cause.SCHEDULE else job.cause
        return Change(job=_due(job, now, next_run_at=now, decided_until=now, cause=cause), skips=skips)
    return Change(job=_at_next_tick(job, schedule, now), skips=skips)


def trigger(job: Job, now: datetime) -> Change:
    """Run it now, once; its ticks stay. Raises WrongState where the job has ended or is dead."""
    job, reaped = reap_first(job, now)
    match job.state:
        case JobState.CLAIMED:
            return Change(job=_later(job, now, trigger=True), waits=True)
        case JobState.PAUSED:
            again = _wishes(job, pause={"reason": job.pause_reason, "by": job.paused_by})
            triggered = _due(_triggered(job, now), now, next_run_at=now, after_current=again)
            return Change(job=triggered, reaped=reaped)
        case JobState.DUE:
            assert job.next_run_at is not None
            brought_forward = job.attempt > 0 or job.next_run_at <= now
            job = job if brought_forward else _triggered(job, now)
            return Change(job=_due(job, now, next_run_at=now), reaped=reaped)
    raise WrongState(f"a job that is {job.state} cannot be triggered", state=job.state)


def redrive(job: Job, now: datetime, *, delay_seconds: float = 0.0) -> Change:
    """A dead job runs again, `delay_seconds` from now: the same occurrence, with all its attempts."""
    if job.state is not JobState.DEAD:
        raise WrongState(f"only a dead job can be redriven, and this one is {job.state}", state=job.state)
    again = _due(
        job,
        now,
        next_run_at=now + timedelta(seconds=delay_seconds),
        cause=Cause.REDRIVE,
        attempt=0,
        lost=0,
        dead_reason=None,
        decided_until=job.decided_until if job.definition.schedule is None else now,
    )
    return Change(job=again, skips=passed(job, now, SkipReason.DEAD))


def patch(job: Job, definition: Definition, now: datetime, *, after_current: bool) -> Change:
    """Give the job `definition`. Where that moves its ticks the chain of attempts ends.

    Raises WrongState where the job has ended, JobAlreadyClaimed where its ticks would move under a run (unless
    `after_current`: then they move when the run has ended).
    """
    job, reaped = reap_first(job, now)
    if job.state in (JobState.DONE, JobState.CANCELLED):
        raise WrongState(f"a job that is {job.state} cannot be changed", state=job.state)
    old = job.definition
    moved = (definition.schedule, definition.run_at) != (old.schedule, old.run_at)
    if job.state is JobState.CLAIMED and moved:
        return _patch_after_current(job, definition, now, after_current)
    if not moved:
        return Change(job=_with_next(_changed(job, now, definition=definition)), reaped=reaped)
    skips = _left_behind(job, now)
    waiting = (job.after_current or {}).get("pause")
    job = _changed(
        job,
        now,
        definition=definition,
        attempt=0,
        kept=None,
        cause=Cause.SCHEDULE,
        decided_until=now,
        after_current=None,
    )
    if definition.schedule is None:
        assert definition.run_at is not None
        next_run_at = first_run_at(job.id, definition, definition.run_at, now)
        job = dataclasses.replace(job, scheduled_for=definition.run_at, next_run_at=next_run_at)
    else:
        job = _at_next_tick(job, parse_schedule(definition.schedule), now, keep_state=True)
    if job.state is JobState.DUE and waiting is not None:  # what was to run before the pause is given up
        job = dataclasses.replace(job, state=JobState.PAUSED, pause_reason=waiting["reason"], paused_by=waiting["by"])
    return Change(job=_with_next(job), skips=skips, reaped=reaped)


def _patch_after_current(job: Job, definition: Definition, now: datetime, after_current: bool) -> Change:
    assert job.lease_owner is not None
    if not after_current:
        raise JobAlreadyClaimed(
            job.id, lease_owner=job.lease_owner, lease_until=job.lease_until, lease_generation=job.lease_generation
        )
    moves = {
        "schedule": None if definition.schedule is None else dict(definition.schedule),
        "runAt": None if definition.run_at is None else definition.run_at.isoformat(),
        "tzdata": definition.tzdata,
    }
    stays = dataclasses.replace(
        definition, schedule=job.definition.schedule, run_at=job.definition.run_at, tzdata=job.definition.tzdata
    )
    return Change(job=_later(dataclasses.replace(job, definition=stays), now, patch=moves), waits=True)


def cancel_after_current(job: Job, now: datetime) -> Change:
    """Nothing follows the current run; where there is none the job is cancelled at once."""
    job, reaped = reap_first(job, now)
    if job.state is JobState.CLAIMED:
        return Change(job=_later(job, now, cancel=True), waits=True)
    if job.state in (JobState.DONE, JobState.CANCELLED):
        return Change(job=_with_next(job), reaped=reaped, released=reaped)
    cancelled = _changed(job, now, state=JobState.CANCELLED, next_run_at=now, kept=None, after_current=None)
    return Change(job=cancelled, reaped=reaped, released=True)


def follow_zone_rules(job: Job, now: datetime, *, tzdata: str) -> Change:
    """A waiting tick is chosen anew by the zone rules of version `tzdata`; where it moves, the job moves with it.

    Ticks that were decided stay decided. A job whose tick has come already (its jitter may not be over), or that waits
    for anything but a tick of its schedule, only notes the version: its next tick will follow the new rules anyhow.
    """
    definition = dataclasses.replace(job.definition, tzdata=tzdata)
    schedule = _schedule(job)
    waits = job.state is JobState.DUE and job.attempt == 0 and job.cause is Cause.SCHEDULE
    if schedule is None or not waits or job.next_run_at is None or min(job.next_run_at, job.scheduled_for) <= now:
        return Change(job=_with_next(dataclasses.replace(job, definition=definition)))
    following = schedule.next_after(max(job.decided_until, now))
    if following is None:
        return Change(job=_at_next_tick(dataclasses.replace(job, definition=definition), schedule, now))
    if following == job.scheduled_for:
        return Change(job=_with_next(dataclasses.replace(job, definition=definition)))
    moved = first_run_at(job.id, definition, following, now)
    return Change(job=_changed(job, now, definition=definition, scheduled_for=following, next_run_at=moved))


def passed(job: Job, now: datetime, reason: SkipReason) -> tuple[Skip, ...]:
    """The ticks up to `now` that nothing has decided. None where there are none or none can be named."""
    skip = ticks_passed(job.definition.schedule, _since(job), now, reason)
    return () if skip is None else (skip,)


def _left_behind(job: Job, now: datetime) -> tuple[Skip, ...]:
    """The same, and the ticks that wait their turn: what a job leaves behind with its schedule."""
    waiting = waiting_ticks(job.cause, job.attempt, job.scheduled_for, job.kept, begun=job.begun)
    try:
        schedule = _schedule(job)
        return () if schedule is None else given_up(schedule, waiting, _since(job), now, SkipReason.RESCHEDULED)
    except ScheduleError:
        return ()


def _since(job: Job) -> datetime:
    return undecided_since(job.cause, job.attempt, job.scheduled_for, job.decided_until)


def _schedule(job: Job) -> Schedule | None:
    return None if job.definition.schedule is None else parse_schedule(job.definition.schedule)


def _triggered(job: Job, now: datetime) -> Job:
    """The job with a manual occurrence before its next tick. What waits to be run already, a chain of attempts or a
    tick that was kept, is brought forward instead: it is decided, and nothing else would remember it."""
    if job.attempt > 0 or job.cause is not Cause.SCHEDULE:
        return job
    return dataclasses.replace(job, cause=Cause.MANUAL, scheduled_for=now, decided_until=_since(job))


def _at_next_tick(job: Job, schedule: Schedule, now: datetime, *, keep_state: bool = False) -> Job:
    following = schedule.next_after(now)
    over = following is None or (schedule.max_runs is not None and job.occurrences >= schedule.max_runs)
    if over or following is None:
        return _changed(
            job, now, state=JobState.DONE, next_run_at=now, decided_until=now, kept=None, after_current=None
        )
    return _due(
        job,
        now,
        state=job.state if keep_state else JobState.DUE,
        scheduled_for=following,
        next_run_at=first_run_at(job.id, job.definition, following, now),
        decided_until=now,
    )


def _due(job: Job, now: datetime, **changes: Any) -> Job:
    return _changed(job, now, **{"state": JobState.DUE, "pause_reason": None, "paused_by": None, **changes})


def _changed(job: Job, now: datetime, **changes: Any) -> Job:
    return dataclasses.replace(job, revision=job.revision + 1, updated_at=now, **changes)


def _later(job: Job, now: datetime, **asked: Any) -> Job:
    """What is asked of a claimed job waits for its run; None takes an earlier wish back."""
    return _with_next(_changed(job, now, after_current=_wishes(job, **asked)))


def _wishes(job: Job, **asked: Any) -> Mapping[str, Any] | None:
    """What waits for the end of a run, with what is asked now; None takes a wish back, all others stay."""
    waiting: Mapping[str, Any] = {**(job.after_current or {}), **asked}
    return {name: value for name, value in waiting.items() if value is not None} or None


def _with_next(job: Job) -> Job:
    """A job as it was read has no next_run_at while it is parked or ended; the row always has one."""
    if job.state in _PARKED_STATES:
        return dataclasses.replace(job, next_run_at=PARKED)
    return job
