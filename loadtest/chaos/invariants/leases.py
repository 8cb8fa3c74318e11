"""I1, I2, I3, I17: generations, leases and the fence, from the database's own record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from loadtest.chaos.history import History, Version, Violation

CLAIMED = "claimed"
CALLERS: Final = "ringcron-api"
"""Who writes for callers."""


def generations_rise_and_have_one_owner(history: History) -> Iterator[Violation]:
    """I1: a job's generation never falls, every claim has a higher one, and each generation has exactly one owner."""
    for job, versions in history.versions_of.items():
        owners: dict[int, Version] = {}
        for version in versions:
            if version.state != CLAIMED or version.change == "delete":
                continue
            first = owners.setdefault(version.generation, version)
            if first.owner != version.owner:
                yield Violation(
                    invariant="I1",
                    job=job,
                    message=f"generation {version.generation} has two owners, {first.owner} and {version.owner}",
                    evidence=(first, version),
                )
        for before, after in pairwise(versions):
            if after.generation < before.generation:
                yield Violation(
                    invariant="I1",
                    job=job,
                    message=f"the generation falls from {before.generation} to {after.generation}",
                    evidence=(before, after),
                )
            elif _claims(before, after) and after.generation == before.generation:
                yield Violation(
                    invariant="I1",
                    job=job,
                    message=f"a claim has the generation of the one before it, {after.generation}",
                    evidence=(before, after),
                )


def leases_do_not_overlap(history: History) -> Iterator[Violation]:
    """I2: a lease ends by its holder's hand or after it has lapsed; nobody claims what is held.

    Who ended it is read from `runs`: a holder's outcome is its own, `lost` is the reaper's. Where the database's clock
    has stepped since the last renewal, a caller's cancel or change may end what looks lapsed: that is its contract, and
    it needs no worker. A reaper may not.
    """
    lost = {(run.job, run.generation) for run in history.runs if run.outcome == "lost"}
    for job, versions in history.versions_of.items():
        for before, after in pairwise(versions):
            if before.state != CLAIMED or before.lease_until is None or after.generation == before.generation == 0:
                continue
            early = after.at < before.lease_until
            if after.writer == CALLERS and any(before.at <= step.at <= after.at for step in history.steps):
                continue
            if after.state == CLAIMED and after.generation != before.generation and early:
                yield Violation(
                    invariant="I2",
                    job=job,
                    message=f"claimed by {after.owner} {before.lease_until - after.at:.3f} s before the lease of "
                    f"{before.owner} lapsed",
                    evidence=(before, after),
                )
            elif after.state != CLAIMED and (job, before.generation) in lost and early:
                yield Violation(
                    invariant="I2",
                    job=job,
                    message=f"taken back from {before.owner} {before.lease_until - after.at:.3f} s before its lease "
                    "lapsed",
                    evidence=(before, after),
                )


OUTAGES: Final = frozenset({"N5", "N6", "N7", "N8", "N8-async", "N15-database"})
"""Nemeses of the whole store, or of its clock."""
GOING_SECONDS: Final = 0.5
"""Until a server that was told to go is gone."""


def an_outage_convicts_nobody(history: History) -> Iterator[Violation]:
    """I17: while the store is away, and until its owners have had time to renew, no lease is taken back. (A cancel may
    close a lapsed one.)"""
    outages = [fault for fault in history.faults if fault.name in OUTAGES and fault.target == "*"]
    cancelled = {call.job for call in history.calls if call.kind == "cancel"}
    for run in history.runs:
        if run.outcome != "lost" or run.job in cancelled:
            continue
        for fault in outages:
            if fault.begin + GOING_SECONDS < run.finished_at < fault.end:
                yield Violation(
                    invariant="I17",
                    job=run.job,
                    message=f"taken back from {run.worker} {fault.end - run.finished_at:.3f} s before the effects of "
                    f"{fault.name} were over",
                    evidence=(run, fault),
                )


def only_the_holder_writes(history: History) -> Iterator[Violation]:
    """I3: only its owner begins or prolongs a lease; a renewal keeps generation and owner; a lease is closed under its
    own generation, and the run row that closes it is of that generation and owner; nothing closes a lease that is
    closed."""
    for job, versions in history.versions_of.items():
        closed: dict[int, Version] = {}
        holders: dict[int, str | None] = {}
        for before, after in pairwise(versions):
            if _is_strange(before, after):
                yield Violation(
                    invariant="I3",
                    job=job,
                    message=f"{after.writer} wrote the lease of {after.owner}",
                    evidence=(before, after),
                )
            if before.state != CLAIMED:
                continue
            holders[before.generation] = before.owner
            if after.state == CLAIMED:
                if after.generation == before.generation and after.owner != before.owner:
                    yield Violation(
                        invariant="I3",
                        job=job,
                        message=f"a write of {after.owner} took over the lease of {before.owner}",
                        evidence=(before, after),
                    )
            elif after.change != "delete":
                if after.generation != before.generation:
                    yield Violation(
                        invariant="I3",
                        job=job,
                        message=f"the lease of generation {before.generation} was closed as {after.generation}",
                        evidence=(before, after),
                    )
                closed[before.generation] = after
        for run in history.runs_of.get(job, ()):
            if run.generation not in closed:
                if run.generation in holders or versions:
                    yield Violation(
                        invariant="I3",
                        job=job,
                        message=f"a run of generation {run.generation} was accepted, and no lease of it was closed",
                        evidence=(run, *versions[-2:]),
                    )
            elif run.outcome != "lost" and run.worker != holders[run.generation]:
                yield Violation(
                    invariant="I3",
                    job=job,
                    message=f"the run of generation {run.generation} was accepted from {run.worker}, but "
                    f"{holders[run.generation]} held it",
                    evidence=(run, closed[run.generation]),
                )


def _is_strange(before: Version, after: Version) -> bool:
    """Whether a lease was begun or prolonged by another than its owner."""
    if after.state != CLAIMED or after.writer is None or before.lease_until == after.lease_until:
        return False
    return after.writer.partition("/")[0] != after.owner


def _claims(before: Version, after: Version) -> bool:
    return before.state != CLAIMED and after.state == CLAIMED
