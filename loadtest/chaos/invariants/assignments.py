"""I12, I13: the ring as it was published."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from loadtest.chaos.history import History, Violation


def a_slot_has_one_owner(history: History) -> Iterator[Violation]:
    """I12: in each epoch a slot has at most one owner for a handler, and epochs rise."""
    for assigned in history.assignments:
        last, owner = -1, ""
        for lo, hi, worker in sorted(assigned.arcs):
            if lo <= last:
                yield Violation(
                    invariant="I12",
                    job=None,
                    message=f"in epoch {assigned.epoch} {owner} and {worker} both own slot {lo}",
                    evidence=(assigned,),
                )
            last, owner = max(last, hi), worker
    by_group: dict[str, list[int]] = {}
    for assigned in history.assignments:
        epochs = by_group.setdefault(assigned.group, [])
        if epochs and assigned.epoch <= epochs[-1]:
            yield Violation(
                invariant="I12",
                job=None,
                message=f"epoch {assigned.epoch} was published after {epochs[-1]}",
                evidence=(assigned,),
            )
        epochs.append(assigned.epoch)


def terms_rise(history: History) -> Iterator[Violation]:
    """I13: no assignment of an older leader is accepted."""
    for before, after in pairwise(history.assignments):
        if after.term < before.term:
            yield Violation(
                invariant="I13",
                job=None,
                message=f"term {after.term} published epoch {after.epoch} after term {before.term} had led",
                evidence=(before, after),
            )
