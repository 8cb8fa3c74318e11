"""Did every occurrence run once, not before its instant? Decided before anything is said about speed.

Invariant: a second start counts as a duplicate unless the database has a run row that explains it (lost, interrupted,
failed: that is at-least-once working; it is counted apart). Two successes of one occurrence are duplicates always.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from loadtest.runs import RunRow, Started

CLOCK_TOLERANCE_SECONDS: Final = 0.001
"""How far a start that a handler wrote down may be off on the database's clock. Claims are not: they get none."""
SHOWN: Final = 5

Occurrence = tuple[UUID, int]
"""A job and the instant it was scheduled for, in microseconds."""


def occurrence(job_id: UUID, scheduled_for: float) -> Occurrence:
    """The key under which starts and runs of the same occurrence meet."""
    return job_id, round(scheduled_for * 1e6)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What was found. `repeated` are starts that a lost or interrupted attempt explains."""

    expected: int
    started: int
    succeeded: int
    duplicates: tuple[Occurrence, ...]
    early: tuple[Occurrence, ...]
    missed: tuple[Occurrence, ...]
    repeated: int
    failed: int

    @property
    def clean(self) -> bool:
        return not (self.duplicates or self.early or self.missed)

    def problems(self) -> list[str]:
        """A sentence for each kind of fault, with the first few jobs."""
        kinds = (("started twice", self.duplicates), ("started early", self.early), ("never completed", self.missed))
        return [f"{len(found):,} of {self.expected:,} {kind}: {_first(found)}" for kind, found in kinds if found]

    def counts(self) -> dict[str, int]:
        """For the record."""
        return {
            "expected": self.expected,
            "started": self.started,
            "succeeded": self.succeeded,
            "duplicates": len(self.duplicates),
            "early": len(self.early),
            "missed": len(self.missed),
            "repeatedAfterLoss": self.repeated,
            "failedRuns": self.failed,
        }


def check(due_at: Mapping[Occurrence, float], starts: Iterable[Started], runs: Iterable[RunRow]) -> Verdict:
    """Judge a run. `due_at`: every occurrence that was to run, and when it was due (Unix seconds)."""
    begun: Counter[Occurrence] = Counter()
    early: set[Occurrence] = set()
    for start in starts:
        key = occurrence(start.job_id, start.scheduled_for)
        if key in due_at:
            begun[key] += 1
            if start.at < due_at[key] - CLOCK_TOLERANCE_SECONDS:
                early.add(key)
    succeeded: Counter[Occurrence] = Counter()
    spent: Counter[Occurrence] = Counter()
    failed = 0
    for run in runs:
        key = occurrence(run.job_id, run.scheduled_for)
        if key not in due_at:
            continue
        if run.claimed_at < due_at[key]:
            early.add(key)
        if run.outcome == "succeeded":
            succeeded[key] += 1
        else:
            spent[key] += 1
            failed += run.outcome not in ("lost", "interrupted")
    duplicates = {key for key, count in begun.items() if count > 1 + spent[key]}
    duplicates |= {key for key, count in succeeded.items() if count > 1}
    return Verdict(
        expected=len(due_at),
        started=len(begun),
        succeeded=len(succeeded),
        duplicates=tuple(sorted(duplicates)),
        early=tuple(sorted(early)),
        missed=tuple(sorted(key for key in due_at if key not in succeeded or key not in begun)),
        repeated=sum(max(0, count - 1) for key, count in begun.items() if key not in duplicates),
        failed=failed,
    )


def _first(found: tuple[Occurrence, ...]) -> str:
    shown = ", ".join(str(job_id) for job_id, _ in found[:SHOWN])
    return shown + (" …" if len(found) > SHOWN else "")
