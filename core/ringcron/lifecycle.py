"""What becomes of a job after a claim and after a run: pure decisions, written down by fenced statements.

                      create                                           DELETE
                        │                 ┌──────────────────────────────┬────────┐
                        ▼     claim       │                              ▼        │
      ┌── resume ──▶  due ─────────▶ claimed ── nothing left ──▶ done  cancelled  │
      │               │ ▲ ▲               │                                       │
    paused ◀─ pause ──┘ │ └── next tick, retry, interrupted, lost ──┐             │
      │                 │                 ├─────────────────────────┘             │
      │              redrive              └── exhausted, lost too often ─▶ dead ──┤
      │                 └──────────────────────────────────────────────────┘      │
      └───────────────────────────────────────────────────────────────────────────┘

Invariant: every tick of a schedule is matched by exactly one occurrence or lies in exactly one skip. Three stored
values carry it: `decided_until` (every tick up to it was run, kept or skipped), `kept` (ticks that wait their turn)
and `cause`. The next tick follows from the schedule and what has been decided, never from when a run ended.
The row in PostgreSQL is authoritative; what is returned here takes effect only if the fence lets it pass.
Overlap and catch-up, what happens to ticks that pass, is in ringcron.policies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from ringcron.errors import ScheduleError
from ringcron.going import Going, first_run_at
from ringcron.models import Cause, Claim, Definition, JobState, OnExhausted, Overlap, RunOutcome, Skip, SkipReason
from ringcron.policies import next_cancelling_tick, overlapped
from ringcron.records import record
from ringcron.undecided import given_up

_FROM_SCHEDULE: Final = frozenset({Cause.SCHEDULE, Cause.CATCHUP, Cause.BUFFER})
_BEFORE_ITS_INSTANT: Final = frozenset({Cause.MANUAL, Cause.REDRIVE})
"""What runs of a one-off may begin before its runAt: one that was asked for, and the same once it had died."""


@record(frozen=True, kw_only=True, slots=True)
class Completion:
    """The row after a run. A due row's next_run_at is the later of `next_run_at` and now + `delay_seconds`."""

    state: JobState
    next_run_at: datetime | None
    delay_seconds: float
    scheduled_for: datetime
    cause: Cause
    attempt: int
    lost: int
    decided_until: datetime
    kept: tuple[datetime, ...]
    skip: Skip | None = None
    dead_reason: str | None = None
    give_back: bool = False  # the occurrence no longer counts as claimed
    patched: bool = False  # the schedule that waited in after_current takes the place of the old one
    after_current: Mapping[str, Any] | None = None  # what still waits, for the end of a later run
    given_up: tuple[Skip, ...] = ()  # the ticks that a patched schedule leaves behind

    @property
    def skips(self) -> tuple[Skip, ...]:
        return self.given_up if self.skip is None else (self.skip, *self.given_up)


def backoff_seconds(definition: Definition, attempt: int, random: float) -> float:
    """Delay after attempt `attempt` (1, 2, …): min(max, min × multiplier^(n−1)) × (0.5 + 0.5 × random in [0, 1))."""
    retry = definition.retry
    try:
        full = min(retry.max_backoff_seconds, retry.min_backoff_seconds * retry.multiplier ** (attempt - 1))
    except OverflowError:
        full = retry.max_backoff_seconds
    return full * (0.5 + 0.5 * random)


def after_run(
    going: Going,
    outcome: RunOutcome,
    *,
    now: datetime,
    random: float,
    error: str | None = None,
    retry_after_seconds: float | None = None,
    dead: bool = False,
) -> Completion:
    """The row after a run that ended with `outcome` at `now` (the database's clock, as well as it is known).

    `dead`: the handler said that no further attempt can help. Losses are decided by the reaper's statement, not here.
    """
    if going.after_current.get("cancel"):
        return _ended(going, JobState.CANCELLED, max(now, going.claim.decided_until))
    completion = _after_run(going, outcome, now, random, error, retry_after_seconds, dead)
    if going.after_current.get("pause") and completion.state is JobState.DUE:
        completion = dataclasses.replace(completion, state=JobState.PAUSED)
    return _carrying(going, completion)


def _carrying(going: Going, completion: Completion) -> Completion:
    """The completion with the wishes that have not taken effect: a trigger that another run of this job comes before,
    a patch of a run that was handed back."""
    if not going.waiting or completion.state not in (JobState.DUE, JobState.PAUSED):
        return completion
    served = {"pause"}
    if completion.cause is Cause.MANUAL and completion.attempt == 0:
        served.add("trigger")
    if completion.patched:
        served.add("patch")
    left = {wish: value for wish, value in going.waiting.items() if wish not in served}
    return dataclasses.replace(completion, after_current=left or None)


def _after_run(
    going: Going,
    outcome: RunOutcome,
    now: datetime,
    random: float,
    error: str | None,
    retry_after_seconds: float | None,
    dead: bool,
) -> Completion:
    claim = going.claim
    if going.after_current.get("patch") and outcome is not RunOutcome.INTERRUPTED:
        return _rescheduled(going, outcome, max(now, claim.decided_until))
    if outcome is RunOutcome.INTERRUPTED:
        handed_back = _same(going, JobState.DUE, attempt=claim.attempt - 1, give_back=claim.attempt == 1)
        if claim.cause is Cause.SCHEDULE:
            # It had begun, so it was settled: the next claim must not ask again whether it was missed.
            handed_back = dataclasses.replace(handed_back, cause=Cause.CATCHUP)
        return handed_back
    if outcome in (RunOutcome.FAILED, RunOutcome.TIMED_OUT):
        if dead:
            return _same(going, JobState.DEAD, dead_reason=error or "the handler said that trying again cannot help")
        if claim.attempt < going.definition.retry.max_attempts:
            delay = max(backoff_seconds(going.definition, claim.attempt, random), retry_after_seconds or 0.0)
            tick = next_cancelling_tick(going)
            if tick is not None:  # the back-off is dropped at the tick
                delay = min(delay, max(0.0, (tick - now).total_seconds()))
            return _same(going, JobState.DUE, delay_seconds=delay)
        if going.ticks is None or going.definition.on_exhausted is OnExhausted.DEAD:
            return _same(
                going,
                JobState.DEAD,
                dead_reason=f"{outcome.value.replace('_', ' ')} at attempt {claim.attempt} of "
                f"{going.definition.retry.max_attempts}: {error or 'no error given'}",
            )
    try:
        return _next_occurrence(going, outcome, max(now, claim.decided_until))
    except ScheduleError as fault:
        return _same(going, JobState.DEAD, dead_reason=f"its schedule cannot be evaluated: {fault}")


def _next_occurrence(going: Going, outcome: RunOutcome, now: datetime) -> Completion:
    """The occurrence is over: decide the ticks that passed while it was going, and choose what comes next."""
    claim, ticks = going.claim, going.ticks
    if ticks is None:
        return _after_one_off(going, outcome, now)
    if ticks.max_runs is not None and going.occurrences >= ticks.max_runs and not going.triggered:
        return _ended(going, JobState.DONE, now)
    buffered, skip = overlapped(going, ticks, now)
    kept = (*going.kept, *buffered)[: going.room]
    if kept:
        buffers = going.definition.overlap is not Overlap.SKIP
        return _due(going, kept[0], Cause.BUFFER if buffers else Cause.CATCHUP, now, now, kept[1:], skip)
    if going.triggered:
        return _due(going, now, Cause.MANUAL, now, now, (), skip)
    following = ticks.next_after(now)
    if following is None:
        return _ended(going, JobState.DONE, now, skip)
    if following <= now:
        raise ScheduleError(f"the tick after {now.isoformat()} came out as {following.isoformat()}")
    return _due(going, following, Cause.SCHEDULE, following + going.jitter, now, (), skip, occurred=claim)


def _after_one_off(going: Going, outcome: RunOutcome, now: datetime) -> Completion:
    claim, run_at = going.claim, going.definition.run_at
    ahead = claim.cause in _BEFORE_ITS_INSTANT and run_at is not None and run_at > claim.decided_until
    if going.triggered:  # its instant, where that is ahead, comes after the run that was asked for
        return _due(going, now, Cause.MANUAL, now, claim.decided_until if ahead else now, (), None)
    if ahead and run_at is not None:
        next_run_at = first_run_at(claim.id, going.definition, run_at, now)
        return _due(going, run_at, Cause.SCHEDULE, next_run_at, claim.decided_until, (), None)
    return _ended(going, JobState.CANCELLED if outcome is RunOutcome.CANCELLED else JobState.DONE, now)


def _rescheduled(going: Going, outcome: RunOutcome, now: datetime) -> Completion:
    """A patch of the schedule waited for this run: the chain ends, and the new schedule's first tick comes next."""
    left: tuple[Skip, ...] = ()
    if going.ticks is not None:
        left = given_up(going.ticks, going.kept, going.claim.decided_until, now, SkipReason.RESCHEDULED)
    moves = going.after_current["patch"]
    patched = dataclasses.replace(going, kept=(), ticks=moves["ticks"])
    if moves["ticks"] is None:
        run_at: datetime = moves["run_at"]
        if going.triggered and run_at > now:  # the run that was asked for does not wait for the new instant
            completion = _due(patched, now, Cause.MANUAL, now, now, (), None)
        else:
            next_run_at = first_run_at(going.claim.id, going.definition, run_at, now)
            completion = _due(patched, run_at, Cause.SCHEDULE, next_run_at, now, (), None)
        return dataclasses.replace(completion, patched=True, given_up=left)
    claim = dataclasses.replace(going.claim, decided_until=now, cause=Cause.MANUAL)
    completion = _next_occurrence(dataclasses.replace(patched, claim=claim), outcome, now)
    return dataclasses.replace(completion, patched=True, given_up=left)


def _same(
    going: Going,
    state: JobState,
    *,
    attempt: int | None = None,
    delay_seconds: float = 0.0,
    dead_reason: str | None = None,
    give_back: bool = False,
) -> Completion:
    """The occurrence stays what it is."""
    claim = going.claim
    return Completion(
        state=state,
        next_run_at=None,
        delay_seconds=delay_seconds,
        scheduled_for=claim.scheduled_for,
        cause=claim.cause,
        attempt=claim.attempt if attempt is None else attempt,
        lost=0,
        decided_until=claim.decided_until,
        kept=going.kept,
        dead_reason=dead_reason,
        give_back=give_back and claim.cause in _FROM_SCHEDULE,
    )


def _due(
    going: Going,
    scheduled_for: datetime,
    cause: Cause,
    next_run_at: datetime,
    decided_until: datetime,
    kept: tuple[datetime, ...],
    skip: Skip | None,
    *,
    occurred: Claim | None = None,
) -> Completion:
    if occurred is not None and occurred.cause in _FROM_SCHEDULE and scheduled_for <= occurred.scheduled_for:
        raise ScheduleError(
            f"the tick after {occurred.scheduled_for.isoformat()} came out as {scheduled_for.isoformat()}"
        )
    return Completion(
        state=JobState.DUE,
        next_run_at=next_run_at,
        delay_seconds=0.0,
        scheduled_for=scheduled_for,
        cause=cause,
        attempt=0,
        lost=0,
        decided_until=decided_until,
        kept=kept,
        skip=skip,
    )


def _ended(going: Going, state: JobState, now: datetime, skip: Skip | None = None) -> Completion:
    claim = going.claim
    return Completion(
        state=state,
        next_run_at=None,
        delay_seconds=0.0,
        scheduled_for=claim.scheduled_for,
        cause=claim.cause,
        attempt=claim.attempt,
        lost=0,
        decided_until=now,
        kept=(),
        skip=skip,
    )
