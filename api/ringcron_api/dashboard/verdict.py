"""The answer to "is anything not running that should?", in one sentence with its reason. Pure.

Invariant: the gravest thing alone is said, the rest is listed beneath; each says what, where, why, and when it will be
over or what ends it.

    bad     due jobs wait, and not only for their turn of a moment
    warn    nothing waits, but something is missing that jobs may need soon, or jobs wait for a person
    good    everything that is due is running
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from ringcron.models import WorkerReport
from ringcron.store.looking import DEAD_GROUPED, Epoch, GoneWorker
from ringcron.store.snapshot import WAITING_COUNTED, Snapshot
from ringcron_api.dashboard.phrases import clock, counted, names, slots, span
from ringcron_api.dashboard.spike import Outlook
from ringcron_api.shards import RingView, arcs_of

LATE_SECONDS: Final = 5.0
"""A lag below this is a job waiting its turn."""
BEHIND_SECONDS: Final = 10.0
"""A slice that lags by this much more than the others lags alone."""


class Level(StrEnum):
    """How grave it is; the order is that of gravity."""

    BAD = "bad"
    WARN = "warn"
    GOOD = "good"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing to know: a sentence, why it is so, when it will be over or what ends it; where to look."""

    level: Level
    sentence: str
    reason: str = ""
    over: str = ""
    link: str = "/dashboard/shards"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The gravest finding, and the others."""

    first: Finding
    others: tuple[Finding, ...] = ()

    @property
    def level(self) -> Level:
        return self.first.level


def verdict_of(
    *,
    now: datetime,
    workers: Sequence[WorkerReport],
    gone: Sequence[GoneWorker],
    epochs: Sequence[Epoch],
    snapshot: Snapshot,
    ring: RingView,
    outlook: Outlook,
) -> Verdict:
    """What is to be said of the pool at `now`."""
    findings = [
        *_nobody(workers, snapshot),
        *_unowned(now, workers, gone, epochs, snapshot, ring),
        *_unclaimable(snapshot, workers),
        *_late(now, snapshot, ring, outlook),
        *_draining(workers),
        *_dead(snapshot),
    ]
    findings.sort(key=lambda finding: list(Level).index(finding.level))
    if not findings:
        findings = [_good(now, snapshot, outlook)]
    return Verdict(first=findings[0], others=tuple(findings[1:]))


def _nobody(workers: Sequence[WorkerReport], snapshot: Snapshot) -> list[Finding]:
    if any(not worker.silent for worker in workers):
        return []
    why = "No worker has reported within the last seconds."
    over = "It is over as soon as a worker starts: ringcron worker."
    if snapshot.due == 0:
        return [Finding(level=Level.WARN, sentence="No worker is running; nothing is due.", reason=why, over=over)]
    oldest = max(late.lag_seconds for late in snapshot.lag.slots)
    due = counted(snapshot.due, "due job", capped=snapshot.capped)
    sentence = f"Nothing runs: {due} {_wait(snapshot.due)}, the oldest for {span(oldest)}, and no worker is running."
    return [Finding(level=Level.BAD, sentence=sentence, reason=why, over=over)]


def _unowned(
    now: datetime,
    workers: Sequence[WorkerReport],
    gone: Sequence[GoneWorker],
    epochs: Sequence[Epoch],
    snapshot: Snapshot,
    ring: RingView,
) -> list[Finding]:
    if not ring.unowned or not ring.held:
        return []
    where = slots(arcs_of(ring.unowned))
    silent = [worker for worker in workers if worker.silent]
    lately = [worker for worker in gone if (now - worker.seen_at).total_seconds() < 60]
    if silent:
        one = silent[0]
        since = f" since {clock(now - timedelta(seconds=one.age_seconds))}"
        why = f"{names([worker.worker_id for worker in silent])} went silent {span(one.age_seconds)} ago."
    elif lately:
        since = f" since {clock(lately[0].seen_at)}"
        why = f"{names([worker.worker_id for worker in lately])} stopped reporting."
    else:
        since = ""
        moving = bool(epochs and epochs[0].in_transit)
        why = "They are on their way from one worker to another." if moving else "No worker was given them yet."
    oldest = max((late.lag_seconds for late in ring.unowned_late.values()), default=0.0)
    over = (
        "The coordinator gives them to others when the session of their owner has ended; until then workers with "
        "room take what is due there, a quarter of a second late."
    )
    if oldest > LATE_SECONDS:
        due = sum(late.due for late in ring.unowned_late.values())
        sentence = f"The oldest due job waits {span(oldest)}: {where} have no owner{since}, {counted(due, 'job')} due."
        return [Finding(level=Level.BAD, sentence=sentence, reason=why, over=over)]
    sentence = f"{where[0].upper()}{where[1:]} have no owner{since}; nothing waits there."
    return [Finding(level=Level.WARN, sentence=sentence, reason=why, over=over)]


def _unclaimable(snapshot: Snapshot, workers: Sequence[WorkerReport]) -> list[Finding]:
    if not workers or all(worker.silent for worker in workers):
        return []
    return [
        Finding(
            level=Level.BAD,
            sentence=f"{counted(one.due, 'due job', capped=one.due >= WAITING_COUNTED)} of the handler {one.handler} "
            f"{_wait(one.due)}, the oldest for {span(one.lag_seconds)}: no worker has that handler.",
            reason="Each worker says which handlers it has; a job waits for one that has its own.",
            over="It is over when a worker with that handler starts.",
            link=f"/dashboard/jobs?state=due&handler={one.handler}",
        )
        for one in sorted(snapshot.waiting, key=lambda one: -one.lag_seconds)[:5]
    ]


def _late(now: datetime, snapshot: Snapshot, ring: RingView, outlook: Outlook) -> list[Finding]:
    slices = sorted(ring.held, key=lambda held: -held.lag_seconds)
    if not slices or slices[0].lag_seconds <= LATE_SECONDS:
        return []
    worst = slices[0]
    due = counted(snapshot.due, "due job", capped=snapshot.capped)
    running, places = snapshot.running, outlook.capacity
    others = slices[1].lag_seconds if len(slices) > 1 else worst.lag_seconds
    if worst.lag_seconds - others > BEHIND_SECONDS:
        sentence = (
            f"The slice of {worst.worker.worker_id} lags by {span(worst.lag_seconds)}, the others by {span(others)}: "
            f"{counted(worst.due, 'job')} due there."
        )
        why = f"It runs {worst.worker.running} of {worst.worker.capacity}."
    else:
        sentence = f"{due} {_wait(snapshot.due)}, the oldest for {span(worst.lag_seconds)}."
        busy = f"{running} of {counted(places, 'place')} are busy"
        why = f"All workers are at their limit: {busy}." if running >= 0.9 * places else f"{busy}."
    over = "When it will be over is not known yet: too few runs have begun."
    if outlook.clears_in_seconds is not None and outlook.starts_per_second is not None:
        ends = now + timedelta(seconds=outlook.clears_in_seconds)
        over = (
            f"At {outlook.starts_per_second:.1f} starts a second it is over in about "
            f"{span(outlook.clears_in_seconds)}, at {clock(ends)} UTC."
        )
    return [Finding(level=Level.BAD, sentence=sentence, reason=why, over=over, link="/dashboard/spikes")]


def _draining(workers: Sequence[WorkerReport]) -> list[Finding]:
    draining = [worker.worker_id for worker in workers if worker.draining]
    if not draining or len(draining) < len(workers):
        return []
    sentence = f"Every worker is draining ({names(draining)}): nothing new starts."
    return [Finding(level=Level.WARN, sentence=sentence, link="/dashboard/workers")]


def _dead(snapshot: Snapshot) -> list[Finding]:
    if snapshot.dead == 0:
        return []
    many = counted(snapshot.dead, "dead job", capped=snapshot.dead >= DEAD_GROUPED)
    return [
        Finding(
            level=Level.WARN,
            sentence=f"{many} {_wait(snapshot.dead)} for a person.",
            reason="Their attempts are used up, or trying again cannot help.",
            over="Redrive them when the fault is mended, or delete them.",
            link="/dashboard/dead",
        )
    ]


def _good(now: datetime, snapshot: Snapshot, outlook: Outlook) -> Finding:
    oldest = max((late.lag_seconds for late in snapshot.lag.slots), default=0.0)
    reason = "No due job waits." if snapshot.due == 0 else f"No due job has waited longer than {span(oldest)}."
    over = f"{counted(snapshot.due_soon, 'job')} will be due within the next minute."
    if outlook.peak is not None and outlook.peak.late_seconds > LATE_SECONDS:
        at = clock(now + timedelta(seconds=outlook.peak.in_seconds))
        over += (
            f" At {at} UTC {counted(outlook.peak.due, 'job')} will be due; the last will start about "
            f"{span(outlook.peak.late_seconds)} late."
        )
    return Finding(
        level=Level.GOOD,
        sentence="Everything that is due is running.",
        reason=reason,
        over=over,
        link="/dashboard/spikes",
    )


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"
