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

    ticks that pass …                     policy        the job runs                       the others
    before the first claim (missed)       latest        the newest                         one skip `missed`
                                          all           the newest 100, oldest first       one skip `missed`
                                          none          the newest if ≤ 60 s old           one skip `missed`
    while an occurrence is going          skip          –                                  one skip `overlap`
                                          buffer_one    the first                          one skip `overlap`
                                          buffer_all    the first 100                      one skip `overlap`
                                          cancel_other  the newest                         one skip `overlap`
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final, Protocol

from ringcron.errors import ScheduleError
from ringcron.models import (
    Catchup,
    Cause,
    Claim,
    Definition,
    JobState,
    OnExhausted,
    Overlap,
    RunOutcome,
    Skip,
    SkipReason,
)

KEPT_LIMIT: Final = 100
NONE_TOLERANCE: Final = timedelta(seconds=60)
"""Under catchup `none` a tick up to this old is late, not missed."""
_MICROSECOND: Final = timedelta(microseconds=1)
_FROM_SCHEDULE: Final = frozenset({Cause.SCHEDULE, Cause.CATCHUP, Cause.BUFFER})


class Ticks(Protocol):
    """The ticks of a schedule within its start and end (ringcron.schedule.Schedule)."""

    @property
    def max_runs(self) -> int | None: ...
    def next_after(self, after: datetime) -> datetime | None: ...
    def latest(self, after: datetime, until: datetime) -> datetime | None: ...
    def count(self, after: datetime, until: datetime) -> int: ...
    def upcoming(self, after: datetime, n: int) -> list[datetime]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Going:
    """An occurrence that is going: its claim, its job's definition, and what the row held when it was read.

    `ticks` is None for a one-off.
    """

    claim: Claim
    definition: Definition
    ticks: Ticks | None
    occurrences: int
    kept: tuple[datetime, ...] = ()
    after_current: Mapping[str, Any] = field(default_factory=dict)
    """What waits for the end of the run (ringcron.changes): pause, trigger, patch, cancel."""

    @property
    def triggered(self) -> bool:
        return bool(self.after_current.get("trigger"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Settlement:
    """What the first claim decides of missed ticks, before the handler starts.

    `release`: nothing is to be run now; the job goes back to `due` at `next_run_at` with its attempt given back.
    """

    release: bool
    next_run_at: datetime | None
    scheduled_for: datetime
    cause: Cause
    kept: tuple[datetime, ...]
    skip: Skip | None
    done: bool = False
    restart: bool = False  # a chain of attempts was dropped at a later tick: this is the first attempt of that one


@dataclass(frozen=True, kw_only=True, slots=True)
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


def jitter_of(job_id_bytes: bytes, window_seconds: float) -> timedelta:
    """The fixed offset of a job in [0, window), by a hash of its id."""
    if window_seconds <= 0:
        return timedelta(0)
    share = int.from_bytes(blake2b(job_id_bytes, digest_size=8, person=b"jitter").digest(), "big") / 2**64
    return timedelta(seconds=window_seconds * share)


def backoff_seconds(definition: Definition, attempt: int, random: float) -> float:
    """Delay after attempt `attempt` (1, 2, …): min(max, min × multiplier^(n−1)) × (0.5 + 0.5 × random in [0, 1))."""
    retry = definition.retry
    try:
        full = min(retry.max_backoff_seconds, retry.min_backoff_seconds * retry.multiplier ** (attempt - 1))
    except OverflowError:
        full = retry.max_backoff_seconds
    return full * (0.5 + 0.5 * random)


def settle(going: Going) -> Settlement | None:
    """What the claim found out about missed ticks; None where the claimed occurrence is simply run.

    Asked at the first claim of an occurrence from the schedule. A later attempt asks only if the first one died before
    its settlement was written, which shows in a tick between scheduled_for and decided_until that nobody decided.
    """
    claim, ticks, policy = going.claim, going.ticks, going.definition.catchup
    if ticks is None:
        return None
    if claim.attempt > 1 and going.definition.overlap is Overlap.CANCEL_OTHER:
        return _drop_chain(going, ticks)
    if claim.cause is not Cause.SCHEDULE:
        return None
    now = claim.decided_until
    newest = ticks.latest(claim.scheduled_for, now) or claim.scheduled_for
    oldest_allowed = now - timedelta(seconds=going.definition.catchup_window_seconds)
    if policy is Catchup.NONE:
        oldest_allowed = max(oldest_allowed, now - NONE_TOLERANCE)
    too_old = newest < oldest_allowed and claim.attempt == 1
    if newest == claim.scheduled_for and not too_old:
        return None
    if too_old:
        following = ticks.next_after(now)
        return Settlement(
            release=True,
            next_run_at=None if following is None else following + _jitter(going),
            scheduled_for=following or newest,
            cause=Cause.SCHEDULE,
            kept=(),
            skip=_skip(going, claim.scheduled_for, newest, SkipReason.MISSED),
            done=following is None,
        )
    run = newest
    kept: tuple[datetime, ...] = ()
    if policy is Catchup.ALL:
        limit = min(KEPT_LIMIT, _room(going) + 1)  # the going one has its place already
        run, *rest = _newest(ticks, claim.scheduled_for, now, oldest_allowed, limit)
        kept = tuple(rest)
    before = ticks.latest(claim.scheduled_for - _MICROSECOND, run - _MICROSECOND)
    return Settlement(
        release=False,
        next_run_at=None,
        scheduled_for=run,
        cause=Cause.CATCHUP,
        kept=kept,
        skip=None if before is None else _skip(going, claim.scheduled_for, before, SkipReason.MISSED),
    )


def _drop_chain(going: Going, ticks: Ticks) -> Settlement | None:
    """Under cancel_other a tick that passes during a back-off drops the chain of attempts and is run itself."""
    since, now = going.claim.decided_until, going.claim.claimed_at
    newest = ticks.latest(since, now)
    if newest is None:
        return None
    before = ticks.latest(since, newest - _MICROSECOND)
    return Settlement(
        release=False,
        next_run_at=None,
        scheduled_for=newest,
        cause=Cause.BUFFER,
        kept=going.kept,
        skip=None if before is None else _skip_after(going, since, before, SkipReason.OVERLAP),
        restart=True,
    )


def next_cancelling_tick(going: Going) -> datetime | None:
    """The tick at which `cancel_other` stops the running attempt; None under the other policies."""
    if going.ticks is None or going.definition.overlap is not Overlap.CANCEL_OTHER:
        return None
    return going.ticks.next_after(going.claim.decided_until)


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
        return dataclasses.replace(completion, state=JobState.PAUSED)
    return completion


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
        return _same(going, JobState.DUE, attempt=claim.attempt - 1, give_back=claim.attempt == 1)
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
    buffered, skip = _overlapped(going, ticks, now)
    kept = (*going.kept, *buffered)[: _room(going)]
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
    return _due(going, following, Cause.SCHEDULE, following + _jitter(going), now, (), skip, occurred=claim)


def _after_one_off(going: Going, outcome: RunOutcome, now: datetime) -> Completion:
    claim, run_at = going.claim, going.definition.run_at
    if claim.cause is Cause.MANUAL and run_at is not None and run_at > claim.decided_until:
        return _due(going, run_at, Cause.SCHEDULE, run_at, claim.decided_until, (), None)
    if going.triggered:
        return _due(going, now, Cause.MANUAL, now, now, (), None)
    return _ended(going, JobState.CANCELLED if outcome is RunOutcome.CANCELLED else JobState.DONE, now)


def _rescheduled(going: Going, outcome: RunOutcome, now: datetime) -> Completion:
    """A patch of the schedule waited for this run: the chain ends, and the new schedule's first tick comes next."""
    skip = None
    if going.ticks is not None:
        newest = going.ticks.latest(going.claim.decided_until, now)
        if newest is not None:
            skip = _skip_after(going, going.claim.decided_until, newest, SkipReason.RESCHEDULED)
    moves = going.after_current["patch"]
    patched = dataclasses.replace(going, kept=(), ticks=moves["ticks"])
    if moves["ticks"] is None:
        run_at: datetime = moves["run_at"]
        completion = _due(patched, run_at, Cause.SCHEDULE, run_at, now, (), skip)
        return dataclasses.replace(completion, patched=True)
    claim = dataclasses.replace(going.claim, decided_until=now, cause=Cause.MANUAL)
    completion = _next_occurrence(dataclasses.replace(patched, claim=claim), outcome, now)
    return dataclasses.replace(completion, skip=skip, patched=True)


def _overlapped(going: Going, ticks: Ticks, now: datetime) -> tuple[list[datetime], Skip | None]:
    """The ticks in (decided_until, now]: those to keep, and the skip of the others."""
    since = going.claim.decided_until
    newest = ticks.latest(since, now)
    if newest is None:
        return [], None
    room = _room(going) - len(going.kept)
    match going.definition.overlap:
        case Overlap.SKIP:
            keep = []
        case Overlap.BUFFER_ONE:
            keep = ticks.upcoming(since, 1) if not going.kept and room > 0 else []
        case Overlap.BUFFER_ALL:
            keep = [tick for tick in ticks.upcoming(since, max(room, 0)) if tick <= now] if room > 0 else []
        case Overlap.CANCEL_OTHER:
            before = ticks.latest(since, newest - _MICROSECOND)
            return [newest], None if before is None else _skip_after(going, since, before, SkipReason.OVERLAP)
    decided = keep[-1] if keep else since
    return keep, None if decided == newest else _skip_after(going, decided, newest, SkipReason.OVERLAP)


def _newest(ticks: Ticks, first: datetime, now: datetime, oldest: datetime, limit: int) -> list[datetime]:
    """The newest ticks in [max(first, oldest), now], at most `limit`, oldest first; at least one."""
    found: list[datetime] = []
    after = max(first, oldest) - _MICROSECOND
    until = now
    while len(found) < max(limit, 1):
        tick = ticks.latest(after, until)
        if tick is None:
            break
        found.append(tick)
        until = tick - _MICROSECOND
    return found[::-1]


def _room(going: Going) -> int:
    """How many more occurrences may wait: KEPT_LIMIT, or what maxRuns leaves. The going one is counted already."""
    max_runs = going.ticks.max_runs if going.ticks is not None else None
    return KEPT_LIMIT if max_runs is None else max(0, min(KEPT_LIMIT, max_runs - going.occurrences))


def _jitter(going: Going) -> timedelta:
    return jitter_of(going.claim.id.bytes, going.definition.jitter_seconds)


def _skip(going: Going, first: datetime, last: datetime, reason: SkipReason) -> Skip:
    """The skip of `first` (known to be a tick) to `last`."""
    assert going.ticks is not None
    return Skip(first=first, last=last, count=1 + going.ticks.count(first, last), reason=reason)


def _skip_after(going: Going, after: datetime, last: datetime, reason: SkipReason) -> Skip:
    """The skip of the ticks in (after, last]."""
    assert going.ticks is not None
    first = going.ticks.next_after(after)
    assert first is not None
    return _skip(going, first, last, reason)


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
