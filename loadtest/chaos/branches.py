"""A history that forked: a server was killed, and its replica, which had not followed all of it, took its place.

Each server's record is a part that can be judged by itself, up to the instant when it was killed; the last one's is the
part that is left. What they have in common stands in both.

    calls   are judged on the server that answered them; of a job that has lost a commit by then, not on a later one
    hits    under a claim that was lost, or whose end was, are judged on the server that knew of it (a worker gives back
            what it finds claimed and does not run: then nothing is left of such a run)

Invariant: pure. Nothing is excused within a part: what is lost is lost whole, and told.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from loadtest.chaos.history import Branch, History, Version

UNDECIDED_SECONDS = 60.0
"""Until its end a server that was killed had no time to decide what fell due; what it has lost since is due again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Losses:
    """What the servers that were killed took with them."""

    versions: Sequence[Version] = ()
    creates: int = 0
    """Creates that were answered, and whose job is gone."""
    cancels: int = 0
    """Cancels that were answered, of jobs that go on."""
    claims: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    """Job and generation."""
    again: int = 0
    """Of the claims: whose job was claimed again later on, by a server that knew nothing of the first."""
    ran: int = 0
    """Of the claims: those of which the sink has heard."""
    runs: int = 0
    """Runs that had ended and were answered; what they were for is run again."""


def losses(history: History) -> Losses:
    """All of them."""
    lost = lost_by(history, len(history.abandoned))
    if not lost:
        return Losses()
    inserted = {version.job for version in lost if version.change == "insert"}
    cancelled = {version.job for version in lost if version.state == "cancelled"}
    claims = claims_of(lost) - claims_of(history.versions)
    claimed_at = {(version.job, version.generation): version.at for version in reversed(lost)}
    last = {version.job: version.at for version in history.versions if version.state == "claimed"}
    again = sum(last.get(job, 0.0) > claimed_at[job, generation] for job, generation in claims)
    return Losses(
        versions=lost,
        creates=len({call.job for call in history.calls if call.kind == "create" and call.outcome == "ok"} & inserted),
        cancels=len({call.job for call in history.calls if call.kind == "cancel" and call.status == 204} & cancelled),
        claims=frozenset(claims),
        again=again,
        ran=len({(hit.job, hit.generation) for hit in history.hits} & claims),
        runs=len(_runs_lost_by(history, len(history.abandoned))),
    )


def parts(history: History) -> Iterator[tuple[str, History]]:
    """What can be judged by itself, with a word for people on whose record it is; what is left comes first."""
    if not history.abandoned:
        yield "", history
        return
    yield "", _part(history, len(history.abandoned))
    for number in range(len(history.abandoned)):
        yield f" (on server {number + 1}, which was killed)", _part(history, number)


def lost_by(history: History, number: int) -> list[Version]:
    """What servers before that one had committed and it never knew, by instant."""
    known = {(version.seq, version.at, version.job) for version in record_of(history, number).versions}
    lost = {
        (version.seq, version.at, version.job): version
        for branch in history.abandoned[:number]
        for version in branch.versions
        if (version.seq, version.at, version.job) not in known
    }
    return sorted(lost.values(), key=lambda version: version.at)


def claims_of(versions: Sequence[Version]) -> set[tuple[str, int]]:
    """Job and generation of what was claimed."""
    return {(version.job, version.generation) for version in versions if version.state == "claimed"}


def _runs_lost_by(history: History, number: int) -> set[tuple[str, int]]:
    """The same of runs: job and generation."""
    before = {(run.job, run.generation) for branch in history.abandoned[:number] for run in branch.runs}
    return before - {(run.job, run.generation) for run in record_of(history, number).runs}


def record_of(history: History, number: int) -> Branch:
    """What server `number` says; after those that were killed comes the one that is left."""
    if number < len(history.abandoned):
        return history.abandoned[number]
    return Branch(
        until=history.ended_at,
        jobs=history.jobs,
        versions=history.versions,
        runs=history.runs,
        skips=history.skips,
    )


def _part(history: History, number: int) -> History:
    record = record_of(history, number)
    killed = number < len(history.abandoned)
    lost = lost_by(history, number)
    lost_jobs = {version.job for version in lost}
    elsewhere = (claims_of(lost) - claims_of(record.versions)) | _runs_lost_by(history, number)
    forked_at = history.abandoned[number - 1].until if number else float("-inf")
    return History(
        settings=dataclasses.replace(history.settings, bound=UNDECIDED_SECONDS) if killed else history.settings,
        jobs=record.jobs,
        versions=record.versions,
        runs=record.runs,
        skips=record.skips,
        hits=[
            hit
            for hit in history.hits
            if (hit.job, hit.generation) not in elsewhere and (not killed or hit.begin < record.until)
        ],
        calls=[
            call
            for call in history.calls
            if not (call.job in lost_jobs and call.invoked < forked_at) and (not killed or call.ended < record.until)
        ],
        assignments=() if killed else history.assignments,
        faults=history.faults,
        ended_at=record.until,
    )
