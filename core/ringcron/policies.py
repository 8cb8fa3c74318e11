"""Overlap and catch-up: what happens to ticks that pass. Pure; what is decided takes effect only under the fence.

Invariant: every tick of a schedule is matched by exactly one occurrence or lies in exactly one skip. Decisions are
stored, never kept in a worker's memory: `decided_until` (every tick up to it was run, kept or skipped), `kept` and
`cause`. A tick is *missed* only where a later tick has also passed before the claim, or where it is older than the
policy allows; what is merely late is run.

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

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ringcron.going import KEPT_LIMIT, Going, Ticks
from ringcron.models import Catchup, Cause, Overlap, Skip, SkipReason

NONE_TOLERANCE: Final = timedelta(seconds=60)
"""Under catchup `none` a tick up to this old is late, not missed."""
_MICROSECOND: Final = timedelta(microseconds=1)


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


def settle(going: Going) -> Settlement | None:
    """What the claim found out about missed ticks; None where the claimed occurrence is simply run.

    Asked at the first claim of an occurrence from the schedule. A later attempt asks only if the first one died before
    its settlement was written, which shows in a tick between scheduled_for and decided_until that nobody decided.
    """
    claim, ticks, policy = going.claim, going.ticks, going.definition.catchup
    if ticks is None:
        return None
    missed = _missed(going, ticks, policy) if claim.cause is Cause.SCHEDULE else None
    if missed is None and claim.attempt > 1 and going.definition.overlap is Overlap.CANCEL_OTHER:
        return _drop_chain(going, ticks)
    return missed


def _missed(going: Going, ticks: Ticks, policy: Catchup) -> Settlement | None:
    claim = going.claim
    now = claim.decided_until
    newest = ticks.latest(claim.scheduled_for, now) or claim.scheduled_for
    oldest_allowed = now - going.jitter - timedelta(seconds=going.definition.catchup_window_seconds)
    if policy is Catchup.NONE:
        oldest_allowed = max(oldest_allowed, now - going.jitter - NONE_TOLERANCE)
    too_old = newest < oldest_allowed and claim.attempt == 1
    if newest == claim.scheduled_for and not too_old:
        return None
    if too_old:
        following = ticks.next_after(now)
        return Settlement(
            release=True,
            next_run_at=None if following is None else following + going.jitter,
            scheduled_for=following or newest,
            cause=Cause.SCHEDULE,
            kept=(),
            skip=going.skip(claim.scheduled_for, newest, SkipReason.MISSED),
            done=following is None,
        )
    run = newest
    kept: tuple[datetime, ...] = ()
    if policy is Catchup.ALL:
        limit = min(KEPT_LIMIT, going.room + 1)  # the going one has its place already
        # A lost attempt has begun: the newest runs however old it is.
        run, *rest = _newest(ticks, claim.scheduled_for, now, min(oldest_allowed, newest), limit)
        kept = tuple(rest)
    # An attempt that died unsettled stands in the history as run: what is skipped begins after it.
    first = claim.scheduled_for if claim.attempt == 1 else ticks.next_after(claim.scheduled_for)
    before = None if first is None else ticks.latest(first - _MICROSECOND, run - _MICROSECOND)
    return Settlement(
        release=False,
        next_run_at=None,
        scheduled_for=run,
        cause=Cause.CATCHUP,
        kept=kept,
        skip=None if first is None or before is None else going.skip(first, before, SkipReason.MISSED),
    )


def _drop_chain(going: Going, ticks: Ticks) -> Settlement | None:
    """Under cancel_other a tick that passes during a back-off drops the chain of attempts and is run itself."""
    since, now = going.claim.decided_until, going.claim.claimed_at
    newest = ticks.latest(since, now)
    if newest is None or going.room == 0:
        return None
    before = ticks.latest(since, newest - _MICROSECOND)
    return Settlement(
        release=False,
        next_run_at=None,
        scheduled_for=newest,
        cause=Cause.BUFFER,
        kept=going.kept,
        skip=None if before is None else going.skip_after(since, before, SkipReason.OVERLAP),
        restart=True,
    )


def _newest(ticks: Ticks, first: datetime, now: datetime, oldest: datetime, limit: int) -> list[datetime]:
    """The newest ticks in [max(first, oldest), now], at most `limit`, oldest first; at least one.

    `oldest` is no later than the newest tick.
    """
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


def next_cancelling_tick(going: Going) -> datetime | None:
    """The tick at which `cancel_other` stops the running attempt; None under the other policies."""
    if going.ticks is None or going.definition.overlap is not Overlap.CANCEL_OTHER or going.room == 0:
        return None
    return going.ticks.next_after(going.claim.decided_until)


def overlapped(going: Going, ticks: Ticks, now: datetime) -> tuple[list[datetime], Skip | None]:
    """The ticks in (decided_until, now]: those to keep, and the skip of the others."""
    since = going.claim.decided_until
    newest = ticks.latest(since, now)
    if newest is None:
        return [], None
    room = going.room - len(going.kept)
    match going.definition.overlap:
        case Overlap.SKIP:
            keep = []
        case Overlap.BUFFER_ONE:
            keep = ticks.upcoming(since, 1) if not going.kept and room > 0 else []
        case Overlap.BUFFER_ALL:
            keep = [tick for tick in ticks.upcoming(since, max(room, 0)) if tick <= now] if room > 0 else []
        case Overlap.CANCEL_OTHER:
            before = ticks.latest(since, newest - _MICROSECOND)
            return [newest], None if before is None else going.skip_after(since, before, SkipReason.OVERLAP)
    decided = keep[-1] if keep else since
    return keep, None if decided == newest else going.skip_after(decided, newest, SkipReason.OVERLAP)
