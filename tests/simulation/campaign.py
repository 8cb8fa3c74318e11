"""Many seeds, played in portions, and the report of the one that fails.

Invariant: a seed's mode does not depend on what is asked for beside it, so `--first S --seeds 1` plays it again.
"""

from __future__ import annotations

import collections
import gc
from collections.abc import Iterator
from typing import Final

from tests.simulation.history import Verdict, play, shortened
from tests.simulation.plan import Mode, make_plan
from tests.simulation.seams import installed

PORTION: Final = 25
SHOWN_LINES: Final = 120


def mode_of(seed: int, mode: Mode | None) -> Mode:
    """The mode in which a seed is played."""
    return mode or ("liveness" if seed % 3 == 2 else "safety")


def portions(first: int, seeds: int, mode: Mode | None) -> Iterator[list[tuple[int, Mode]]]:
    """The seeds with their modes, in portions."""
    every = [(seed, mode_of(seed, mode)) for seed in range(first, first + seeds)]
    for start in range(0, len(every), PORTION):
        yield every[start : start + PORTION]


def play_portion(seeds: list[tuple[int, Mode]]) -> tuple[str | None, dict[str, int], float, int]:
    """The report of the first failure, if there is one; what happened; the slowest recovery; how many were played."""
    counts: collections.Counter[str] = collections.Counter()
    slowest = 0.0
    gc.disable()
    with installed():
        for seed, mode in seeds:
            verdict = play(make_plan(seed, mode))
            counts.update(verdict.counts)
            slowest = max(slowest, verdict.settled_seconds or 0.0)
            if verdict.violation is not None:
                return report(verdict), counts, slowest, 0
    gc.collect()
    return None, counts, slowest, len(seeds)


def report(verdict: Verdict) -> str:
    """The failure, how to see it again, and the shortest history that was found to bring it about."""
    seed, mode = verdict.plan.seed, verdict.plan.mode
    short = shortened(verdict)
    assert short.violation is not None
    subject = short.violation.subject
    told = [entry for entry in short.entries if entry.subject in ("", subject) or not subject]
    faults = "".join(f"\n    {fault}" for fault in short.plan.faults)
    jobs = "".join(f"\n    {job}" for job in short.plan.jobs)
    return "\n".join(
        [
            f"FAILED  seed {seed} in {mode} mode: {verdict.violation}",
            f"again:  python -m tests.simulation --first {seed} --seeds 1 --mode {mode} --show",
            f"the shortest history found: workers {short.plan.workers}, coordinators {short.plan.coordinators}",
            f"  faults:{faults or ' none'}",
            f"  jobs:{jobs or ' none'}",
            *(str(entry) for entry in told[-SHOWN_LINES:]),
            f"  ⇒ {short.violation}",
        ]
    )
