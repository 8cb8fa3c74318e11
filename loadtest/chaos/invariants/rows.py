"""I14, I15, I16: states, deadlines, bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from loadtest.chaos.history import ENDED, History, Violation

LEGAL: Final[dict[str, frozenset[str]]] = {
    "due": frozenset({"due", "claimed", "paused", "cancelled", "dead"}),
    "claimed": frozenset({"claimed", "due", "paused", "done", "cancelled", "dead"}),
    "paused": frozenset({"paused", "due", "cancelled", "done"}),
    "dead": frozenset({"dead", "due", "cancelled"}),
    "done": frozenset({"done"}),
    "cancelled": frozenset({"cancelled"}),
}
FIRST: Final = frozenset({"due", "paused"})
FAR: Final = 250e9
"""Seconds beyond any instant that a job can have."""


def states_change_along_legal_edges(history: History) -> Iterator[Violation]:
    """I14: a job begins due (or paused) and changes only as the life-cycle allows."""
    for job, versions in history.versions_of.items():
        if versions[0].change == "insert" and versions[0].state not in FIRST:
            yield Violation(invariant="I14", job=job, message=f"begins {versions[0].state}", evidence=(versions[0],))
        for before, after in pairwise(versions):
            if after.change != "delete" and after.state not in LEGAL[before.state]:
                yield Violation(
                    invariant="I14",
                    job=job,
                    message=f"goes from {before.state} to {after.state}",
                    evidence=(before, after),
                )


def what_waits_has_a_deadline(history: History) -> Iterator[Violation]:
    """I15: a due row has an instant, a claimed one a lease that ends."""
    for job, versions in history.versions_of.items():
        for version in versions:
            waits_for_ever = version.state == "due" and not 0 < version.next_run_at < FAR
            held_for_ever = version.state == "claimed" and (version.owner is None or version.lease_until is None)
            if waits_for_ever or held_for_ever:
                yield Violation(
                    invariant="I15", job=job, message=f"{version.state} without a deadline", evidence=(version,)
                )


def every_job_is_one_row(history: History) -> Iterator[Violation]:
    """I16: an id is inserted once, and only what has ended is deleted."""
    for job, versions in history.versions_of.items():
        inserts = [version for version in versions if version.change == "insert"]
        if len(inserts) > 1:
            yield Violation(invariant="I16", job=job, message="has two rows", evidence=tuple(inserts))
        deleted = [version for version in versions if version.change == "delete"]
        if deleted and deleted[0].state not in ENDED:
            yield Violation(
                invariant="I16", job=job, message=f"was deleted while {deleted[0].state}", evidence=(deleted[0],)
            )
        if deleted and versions[-1] is not deleted[0]:
            yield Violation(
                invariant="I16", job=job, message="changed after it was deleted", evidence=(deleted[0], versions[-1])
            )
