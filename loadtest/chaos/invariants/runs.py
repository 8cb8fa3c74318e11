"""I4, I5, I8, I9: what the sink saw, held against leases and run rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from loadtest.chaos.history import History, Hit, Run, Violation

RETRYABLE = frozenset({"failed", "timed_out"})
HANDED_BACK = frozenset({"lost", "interrupted"})
"""These leave the occurrence to be run again; an `interrupted` one gives its attempt back."""


def runs_of_a_job_overlap_only_under_a_fault(history: History) -> Iterator[Violation]:
    """I4: two runs of a job overlap at the sink only where the older one's lease had lapsed before the newer claim, and
    a fault had touched the older one's worker; and no longer than that fault can be felt."""
    for job, hits in history.hits_of.items():
        for older, newer in pairwise(hits):
            until = _end_of(older)
            if newer.begin >= until:
                continue
            lapsed = _lapsed_before(history, job, older.generation, newer.generation)
            faults = history.touching(older.worker, older.begin, newer.begin)
            felt = max((fault.end for fault in faults), default=until)
            if not lapsed or not faults or until > felt:
                why = "its lease had not lapsed"
                if lapsed:
                    why = "no fault had touched the older one's worker"
                if lapsed and faults:
                    why = f"the fault had been over for {until - felt:.3f} s by then"
                yield Violation(
                    invariant="I4",
                    job=job,
                    message=f"two runs overlap by {until - newer.begin:.3f} s, and {why}",
                    evidence=(older, newer),
                )


def _end_of(hit: Hit) -> float:
    """Until when the run is known to have gone on. One whose end the sink never heard of ended with its worker, at some
    time after its begin."""
    return hit.begin if hit.end is None else hit.end


def _lapsed_before(history: History, job: str, older: int, newer: int) -> bool:
    lease_until: float | None = None
    for version in history.versions_of.get(job, ()):
        if version.generation == older and version.lease_until is not None:
            lease_until = version.lease_until
        if version.generation == newer and version.state == "claimed":
            return lease_until is not None and version.at >= lease_until
    return False


def nothing_begins_before_its_instant(history: History) -> Iterator[Violation]:
    """I5: no run begins before the instant that it is for, by the database's clock; where that was set back, by what it
    had said since it was claimed first."""
    claimed_at = {
        (version.job, version.scheduled_for): version.at
        for versions in history.versions_of.values()
        for version in reversed(versions)
        if version.state == "claimed"
    }
    for hit in history.hits:
        claimed = claimed_at.get((hit.job, hit.scheduled_for), hit.begin)
        early = hit.scheduled_for - history.latest_said(min(claimed, hit.begin), hit.begin)
        if early > history.settings.clock_tolerance:
            yield Violation(invariant="I5", job=hit.job, message=f"began {early:.3f} s early", evidence=(hit,))


def runs_and_hits_are_the_same(history: History) -> Iterator[Violation]:
    """I8: every hit has a run row, every success a hit; attempts of an occurrence are counted 1, 2, … without holes,
    and no more than were allowed."""
    for job, hits in history.hits_of.items():
        for generation, count in Counter(one.generation for one in hits).items():
            if count > 1:
                twice = tuple(one for one in hits if one.generation == generation)
                yield Violation(
                    invariant="I8", job=job, message=f"generation {generation} began {count} times", evidence=twice
                )
    rows = {(run.job, run.generation) for run in history.runs}
    hit = {(seen.job, seen.generation) for seen in history.hits}
    open_now = {
        (versions[-1].job, versions[-1].generation)
        for versions in history.versions_of.values()
        if versions[-1].state == "claimed"
    }
    for seen in history.hits:
        if (seen.job, seen.generation) not in rows | open_now:
            yield Violation(invariant="I8", job=seen.job, message="ran, and no run row says so", evidence=(seen,))
    for run in history.runs:
        if run.outcome == "succeeded" and (run.job, run.generation) not in hit:
            yield Violation(
                invariant="I8", job=run.job, message="succeeded, and the sink knows nothing", evidence=(run,)
            )
    for (job, scheduled_for, _), chain in _chains(history).items():
        spent = [run.attempt for run in chain if run.outcome not in ("interrupted", "cancelled")]
        if any(count > 1 for number, count in Counter(spent).items() if number) and not _redriven(chain):
            yield Violation(
                invariant="I8",
                job=job,
                message=f"an attempt of the occurrence of {scheduled_for} was counted twice: {spent}",
                evidence=tuple(chain),
            )
        if spent and sorted(set(spent)) != list(range(min(spent), max(spent) + 1)):
            yield Violation(
                invariant="I8", job=job, message=f"the attempts have a hole: {spent}", evidence=tuple(chain)
            )
        planned = history.jobs.get(job)
        if planned is not None and _failures(chain) > planned.max_attempts:
            yield Violation(
                invariant="I8",
                job=job,
                message=f"{_failures(chain)} attempts failed of {planned.max_attempts} allowed",
                evidence=tuple(chain),
            )


def an_attempt_follows_a_failed_or_lost_one(history: History) -> Iterator[Violation]:
    """I9: an occurrence is run again only after it failed, was handed back or was lost; never after it succeeded."""
    for (job, scheduled_for, _), chain in _chains(history).items():
        for before, after in pairwise(chain):
            if before.outcome not in RETRYABLE | HANDED_BACK:
                yield Violation(
                    invariant="I9",
                    job=job,
                    message=f"the occurrence of {scheduled_for} was run again although it had {before.outcome}",
                    evidence=(before, after),
                )
            elif after.claimed_at < before.finished_at - history.settings.clock_tolerance:
                yield Violation(
                    invariant="I9",
                    job=job,
                    message=f"attempt {after.attempt} was claimed before attempt {before.attempt} had ended",
                    evidence=(before, after),
                )


def _chains(history: History) -> dict[tuple[str, float, str], list[Run]]:
    """The runs of each occurrence, oldest first."""
    chains: dict[tuple[str, float, str], list[Run]] = defaultdict(list)
    for job, runs in history.runs_of.items():
        for run in runs:
            kind = run.cause if run.cause in ("manual", "redrive") else "tick"
            chains[job, run.scheduled_for, kind].append(run)
    return chains


def _failures(chain: list[Run]) -> int:
    return sum(run.outcome in RETRYABLE for run in chain)


def _redriven(chain: list[Run]) -> bool:
    return chain[0].cause in ("redrive", "manual")
