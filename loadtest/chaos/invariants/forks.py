"""I18, I19: what holds although a server was lost with commits that its successor never saw."""

from __future__ import annotations

from collections.abc import Iterator

from loadtest.chaos.branches import claims_of, lost_by, record_of
from loadtest.chaos.history import History, Version, Violation


def no_generation_is_used_twice(history: History) -> Iterator[Violation]:
    """I18: a generation that was given out once is never given out again, by whatever server. (What the sink was told
    of it is judged by I8, on each server.)"""
    first: dict[tuple[str, int], Version] = {}
    told: set[tuple[str, int]] = set()
    for number in range(len(history.abandoned) + 1):
        claims: dict[tuple[str, int], Version] = {}
        for version in sorted(record_of(history, number).versions, key=lambda version: version.seq):
            if version.state == "claimed":
                claims.setdefault((version.job, version.generation), version)
        for claim, version in claims.items():
            before = first.setdefault(claim, version)
            if (before.at, before.owner) != (version.at, version.owner) and claim not in told:
                told.add(claim)
                yield Violation(
                    invariant="I18",
                    job=version.job,
                    message=f"generation {version.generation} was given to {before.owner} and, on another timeline, "
                    f"again to {version.owner}",
                    evidence=(before, version),
                )


def what_was_lost_does_not_go_on(history: History) -> Iterator[Violation]:
    """I19: a run whose claim was lost is over a lease after the failover's effects: by then its worker must know."""
    lost = claims_of(lost_by(history, len(history.abandoned))) - claims_of(history.versions)
    killed_at = {claim: branch.until for branch in history.abandoned for claim in claims_of(branch.versions)}
    for hit in history.hits:
        if (hit.job, hit.generation) not in lost or hit.end is None:
            continue
        until = killed_at[hit.job, hit.generation]
        felt = max((fault.end for fault in history.faults if fault.begin <= until <= fault.end), default=until)
        if hit.end > felt + history.settings.lease:
            yield Violation(
                invariant="I19",
                job=hit.job,
                message=f"the claim of {hit.generation} was lost, and its run went on for {hit.end - felt:.3f} s after "
                "the failover's effects were over",
                evidence=(hit,),
            )
