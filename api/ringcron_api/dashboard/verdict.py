"""The answer to "is anything not running that should?", in one sentence with its reason. Pure.

Invariant: the gravest thing alone is said, the rest is listed beneath; each says what, where, why, and when it will be
over or what ends it.

    bad     due jobs wait, and not only for their turn of a moment; or a job breaches its alert
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
from ringcron.store.alerting import AUDITED
from ringcron.store.looking import DEAD_GROUPED, Epoch, GoneWorker
from ringcron.store.snapshot import WAITING_COUNTED, Snapshot
from ringcron_api.dashboard.alarms import Alarms, Overlooked
from ringcron_api.dashboard.phrases import clock, counted, names, slots, span, stamp_words
from ringcron_api.dashboard.spike import NO_FORECAST, Spike
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
    spike: Spike | None,
    alarms: Alarms,
    overlooked: Sequence[Overlooked],
) -> Verdict:
    """What is to be said of the pool at `now`. `spike` None: what comes is not known."""
    findings = [
        *_nobody(workers, snapshot),
        *_unowned(now, workers, gone, epochs, snapshot, ring),
        *_unclaimable(snapshot, workers),
        *_late(now, workers, snapshot, ring, spike),
        *_overlooked(overlooked),
        *_alarmed(alarms),
        *_draining(workers),
        *_dead(snapshot),
    ]
    findings.sort(key=lambda finding: list(Level).index(finding.level))
    if not findings:
        findings = [_good(snapshot, spike)]
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


def _late(
    now: datetime, workers: Sequence[WorkerReport], snapshot: Snapshot, ring: RingView, spike: Spike | None
) -> list[Finding]:
    slices = sorted(ring.held, key=lambda held: -held.lag_seconds)
    if not slices or slices[0].lag_seconds <= LATE_SECONDS:
        return []
    worst = slices[0]
    due = counted(snapshot.due, "due job", capped=snapshot.capped)
    running = snapshot.running
    places = sum(worker.capacity for worker in workers if not worker.silent and not worker.draining)
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
    over = "When it will be over is not known: no worker has measured yet how long a run takes."
    if spike is None:
        over = f"When it will be over is not known: {NO_FORECAST}."
    rate = None if spike is None else spike.runs_per_second(places)
    if rate:
        ends = now + timedelta(seconds=snapshot.due / rate)
        over = f"At {rate:,.1f} starts a second it is over in about {span(snapshot.due / rate)}, at {clock(ends)} UTC."
    return [Finding(level=Level.BAD, sentence=sentence, reason=why, over=over, link="/dashboard/spikes")]


def _overlooked(overlooked: Sequence[Overlooked]) -> list[Finding]:
    if not overlooked:
        return []
    oldest = min(overlooked, key=lambda one: one.since)
    jobs = sum(one.jobs for one in overlooked)
    capped = any(one.jobs >= AUDITED for one in overlooked)
    return [
        Finding(
            level=Level.BAD,
            sentence=f"{counted(jobs, 'enabled job', capped=capped)} of {names([one.handler for one in overlooked])} "
            f"{'is' if jobs == 1 else 'are'} long overdue and nobody holds {'it' if jobs == 1 else 'them'}, "
            f"the oldest since {stamp_words(oldest.since)}.",
            reason="A job that is due for minutes without a worker that holds it may never run.",
            over="The page of the oldest says what it waits for.",
            link=f"/dashboard/jobs/{oldest.oldest_id}",
        )
    ]


def _alarmed(alarms: Alarms) -> list[Finding]:
    if not alarms.found:
        return []
    oldest, many = alarms.found[0], len(alarms.found)
    told = f"since {stamp_words(oldest.since)}: {oldest.sentence}."
    said = f"{counted(many, 'alert', capped=alarms.capped)} of jobs are breached, the oldest {told}"
    return [
        Finding(
            level=Level.BAD,
            sentence=f"An alert of a job is breached {told}" if many == 1 and not alarms.capped else said,
            reason="The job, or who created it, asked to be told.",
            over="It is over when the job starts, succeeds, or has no such alert any more.",
            link="/dashboard/alerts",
        )
    ]


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


def _good(snapshot: Snapshot, spike: Spike | None) -> Finding:
    oldest = max((late.lag_seconds for late in snapshot.lag.slots), default=0.0)
    reason = "No due job waits." if snapshot.due == 0 else f"No due job has waited longer than {span(oldest)}."
    over = f"{counted(snapshot.due_soon, 'job')} will be due within the next minute."
    worst = 0.0 if spike is None or not spike.measured else spike.prediction.worst_delay_seconds or 0.0
    if spike is None:
        over += f" What comes then is not known: {NO_FORECAST}."
    elif spike.worst_due and worst > LATE_SECONDS:
        over += (
            f" At {clock(spike.at(spike.worst_second))} UTC {counted(spike.worst_due, 'job')} will be due; "
            f"the last will start about {span(worst)} late."
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
