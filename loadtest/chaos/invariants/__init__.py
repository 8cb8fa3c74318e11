"""The invariants of a history (I1 to I19): pure functions from a History to what violates them.

leases        I1 I2 I3 I17  generations, leases, the fence
runs          I4 I5 I8 I9   what the sink saw, attempts
calls         I6 I7         what callers were promised
ticks         I10 I11       every tick run or skipped, once, on time
assignments   I12 I13       the ring
rows          I14 I15 I16   states, deadlines, bookkeeping
forks         I18 I19       what holds although a failover lost commits

I1 to I17 are judged on each server's record by itself (`branches`), I18 and I19 on all of them together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Final

from loadtest.chaos.branches import parts
from loadtest.chaos.history import History, Violation
from loadtest.chaos.invariants import assignments, calls, forks, leases, rows, runs, ticks

Invariant = Callable[[History], Iterator[Violation]]

INVARIANTS: Final[dict[str, Invariant]] = {
    "I1": leases.generations_rise_and_have_one_owner,
    "I2": leases.leases_do_not_overlap,
    "I3": leases.only_the_holder_writes,
    "I4": runs.runs_of_a_job_overlap_only_under_a_fault,
    "I5": runs.nothing_begins_before_its_instant,
    "I6": calls.what_was_cancelled_never_starts,
    "I7": calls.creates_are_done_as_they_were_answered,
    "I8": runs.runs_and_hits_are_the_same,
    "I9": runs.an_attempt_follows_a_failed_or_lost_one,
    "I10": ticks.every_tick_is_run_or_skipped,
    "I11": ticks.runs_are_of_ticks,
    "I12": assignments.a_slot_has_one_owner,
    "I13": assignments.terms_rise,
    "I14": rows.states_change_along_legal_edges,
    "I15": rows.what_waits_has_a_deadline,
    "I16": rows.every_job_is_one_row,
    "I17": leases.an_outage_convicts_nobody,
    "I18": forks.no_generation_is_used_twice,
    "I19": forks.what_was_lost_does_not_go_on,
}
ACROSS: Final = frozenset({"I18", "I19"})
"""Those that look at all servers' records at once."""


def check(history: History) -> list[Violation]:
    """Every violation, in the order of the invariants."""
    judged = list(parts(history))
    found: list[Violation] = []
    for name, invariant in INVARIANTS.items():
        for where, part in [("", history)] if name in ACROSS else judged:
            found += [dataclasses.replace(one, message=one.message + where) for one in invariant(part)]
    return found
