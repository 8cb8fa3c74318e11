"""Which ticks of a job nothing has decided yet.

Invariant: a tick is decided by a run, by a skip or by being kept. A claim moves `decided_until` to its now before it is
settled, so a row may say that ticks are decided which nobody has told; what it waits with shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ringcron.errors import ScheduleError
from ringcron.models import Cause, Skip, SkipReason
from ringcron.schedule import parse_schedule

_MICROSECOND = timedelta(microseconds=1)


def undecided_since(cause: Cause, attempt: int, scheduled_for: datetime, decided_until: datetime) -> datetime:
    """The instant up to which the ticks of a row without a live lease are decided.

    A settlement that passes ticks over gives the occurrence another cause. Where the cause is still `schedule`, no tick
    after its own is decided; its own is told by the runs of its attempts, and without any it has not begun.
    """
    if cause is not Cause.SCHEDULE:
        return decided_until
    return min(decided_until, scheduled_for - _MICROSECOND if attempt == 0 else scheduled_for)


def ticks_passed(document: Mapping[str, Any] | None, since: datetime, now: datetime, reason: SkipReason) -> Skip | None:
    """The ticks in (since, now] of a stored schedule, as one skip. None where there are none, or where the schedule
    that named them cannot be read any more: that may be what the job died of, or what a patch takes away."""
    try:
        return skip_between(document, since, now, reason)
    except ScheduleError:
        return None


def skip_between(document: Mapping[str, Any] | None, since: datetime, now: datetime, reason: SkipReason) -> Skip | None:
    """The same. ScheduleError where the schedule cannot be read."""
    if document is None:
        return None
    schedule = parse_schedule(document)
    first, last = schedule.next_after(since), schedule.latest(since, now)
    if first is None or last is None:
        return None
    return Skip(first=first, last=last, count=schedule.count(since, now), reason=reason)
