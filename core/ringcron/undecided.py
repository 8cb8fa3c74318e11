"""Which ticks of a job nothing has decided yet, and which it gives up with its schedule.

Invariant: a tick is decided by a run, by a skip or by being kept. A claim moves `decided_until` to its now before it is
settled, so a row may say that ticks are decided which nobody has told; what it waits with shows them. No two skips tell
the same tick.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from ringcron.errors import ScheduleError
from ringcron.going import Ticks
from ringcron.models import Cause, Skip, SkipReason
from ringcron.schedule import parse_schedule

_MICROSECOND: Final = timedelta(microseconds=1)
_WAITED: Final = frozenset({Cause.CATCHUP, Cause.BUFFER})


def undecided_since(cause: Cause, attempt: int, scheduled_for: datetime, decided_until: datetime) -> datetime:
    """The instant up to which the ticks of a row without a live lease are decided.

    A settlement that passes ticks over gives the occurrence another cause. Where the cause is still `schedule`, no tick
    after its own is decided; its own is told by the runs of its attempts, and without any it has not begun.
    """
    if cause is not Cause.SCHEDULE:
        return decided_until
    return min(decided_until, scheduled_for - _MICROSECOND if attempt == 0 else scheduled_for)


def waits_unattempted(cause: Cause, attempt: int) -> bool:
    """Whether a row waits with a tick that was kept or missed, or of which a run was handed back: no attempt tells."""
    return cause in _WAITED and attempt == 0


def waiting_ticks(
    cause: Cause, attempt: int, scheduled_for: datetime, kept: Sequence[datetime] | None, *, begun: bool
) -> list[datetime]:
    """The ticks that a row without a live lease keeps and that no run tells, oldest first. `begun`: a run of its
    occurrence was handed back."""
    first = [scheduled_for] if waits_unattempted(cause, attempt) and not begun else []
    return [*first, *(kept or ())]


def ticks_passed(document: Mapping[str, Any] | None, since: datetime, now: datetime, reason: SkipReason) -> Skip | None:
    """The ticks in (since, now] of a stored schedule, as one skip. None where there are none, or where the schedule
    that named them cannot be read any more: that may be what the job died of, or what a patch takes away."""
    if document is None:
        return None
    try:
        return _passed(parse_schedule(document), since, now, reason)
    except ScheduleError:
        return None


def _passed(ticks: Ticks, since: datetime, now: datetime, reason: SkipReason) -> Skip | None:
    last = ticks.latest(since, now)
    first = None if last is None else ticks.next_after(since)
    if first is None or last is None:
        return None
    return Skip(first=first, last=last, count=ticks.count(since, now), reason=reason)


def given_up(
    ticks: Ticks, waiting: Sequence[datetime], since: datetime, now: datetime, reason: SkipReason
) -> tuple[Skip, ...]:
    """What a job leaves behind with its schedule, as skips of ticks that follow one another: between them lies what
    others tell. Those that were `waiting`, oldest first, are rescheduled; those in (since, now] passed for `reason`."""
    skips: list[Skip] = []
    for tick in waiting:
        _tell(skips, ticks, Skip(first=tick, last=tick, count=1, reason=SkipReason.RESCHEDULED))
    passed = _passed(ticks, since, now, reason)
    if passed is not None:
        _tell(skips, ticks, passed)
    return tuple(skips)


def _tell(skips: list[Skip], ticks: Ticks, skip: Skip) -> None:
    """Add a skip, or let the one before it go on, where no tick lies between them."""
    if skips and skips[-1].reason is skip.reason and ticks.next_after(skips[-1].last) == skip.first:
        skip = dataclasses.replace(skip, first=skips[-1].first, count=skips[-1].count + skip.count)
        skips.pop()
    skips.append(skip)
