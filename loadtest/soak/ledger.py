"""What was to run and what has run, judged piece by piece and then forgotten. Pure.

Invariant: every occurrence is judged once, by `loadtest.checking`, when its time is over: after that a start or a
success of it is a fault by itself. What is held is what the last minutes brought.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from loadtest.checking import Occurrence, check, occurrence
from loadtest.runs import RunRow, Started

BUCKET_SECONDS: Final = 10.0
TOLD: Final = 10
"""So many sentences about faults are kept; the rest is counted."""

RunsOf = Callable[[list[UUID], float], Iterable[RunRow]]
"""Every run of these jobs since an instant, read now."""


@dataclass(slots=True)
class _Bucket:
    due_at: dict[Occurrence, float] = field(default_factory=dict)
    starts: list[Started] = field(default_factory=list)
    runs: list[RunRow] = field(default_factory=list)
    pids: dict[Occurrence, int] = field(default_factory=dict)


class Ledger:
    """`counts` are those of the verdicts so far. All instants are Unix seconds of the database's clock."""

    def __init__(self, runs_of: RunsOf) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.untold = 0
        self._runs_of = runs_of
        self._buckets: dict[int, _Bucket] = {}
        self._closed = -1

    @property
    def open(self) -> int:
        """How many occurrences have not been judged yet."""
        return sum(len(bucket.due_at) for bucket in self._buckets.values())

    def expect(self, job_id: UUID, due_at: float) -> None:
        """This is to run once, not before its instant."""
        self._bucket(due_at).due_at[occurrence(job_id, due_at)] = due_at

    def started(self, start: Started, pid: int) -> int | None:
        """A handler wrote down that it began; the pid of the worker that began the same occurrence before."""
        if self._index(start.scheduled_for) <= self._closed:
            self._tell(f"job {start.job_id} of {start.scheduled_for:.3f} started after it was judged")
            return None
        bucket = self._bucket(start.scheduled_for)
        bucket.starts.append(start)
        key = occurrence(start.job_id, start.scheduled_for)
        before = bucket.pids.get(key)
        bucket.pids[key] = pid
        return before

    def ran(self, run: RunRow) -> None:
        """A run row."""
        if self._index(run.scheduled_for) > self._closed:
            self._bucket(run.scheduled_for).runs.append(run)
        elif run.outcome == "succeeded":
            self._tell(f"job {run.job_id} of {run.scheduled_for:.3f} succeeded after it was judged")

    def close(self, until: float) -> None:
        """Judge what was due before `until`, in whole buckets, and forget it."""
        for index in sorted(index for index in self._buckets if (index + 1) * BUCKET_SECONDS <= until):
            self._judge(index * BUCKET_SECONDS, self._buckets.pop(index))
            self._closed = index

    def _judge(self, since: float, bucket: _Bucket) -> None:
        verdict = check(bucket.due_at, bucket.starts, bucket.runs)
        if not verdict.clean:
            # A run row may have come later than its neighbours: look again before anything is said.
            faulty = {job_id for job_id, _ in (*verdict.duplicates, *verdict.early, *verdict.missed)}
            rest = [run for run in bucket.runs if run.job_id not in faulty]
            again = list(self._runs_of(sorted(faulty), since - BUCKET_SECONDS))
            verdict = check(bucket.due_at, bucket.starts, [*rest, *again])
        self.counts.update(verdict.counts())
        for problem in verdict.problems():
            self._tell(problem)
        for start in bucket.starts:
            if occurrence(start.job_id, start.scheduled_for) not in bucket.due_at:
                self.counts["neverAsked"] += 1
                self._tell(f"job {start.job_id} started for {start.scheduled_for:.3f}, which nobody had asked for")

    def _tell(self, problem: str) -> None:
        if len(self.problems) < TOLD:
            self.problems.append(problem)
        else:
            self.untold += 1

    def _bucket(self, at: float) -> _Bucket:
        return self._buckets.setdefault(self._index(at), _Bucket())

    @staticmethod
    def _index(at: float) -> int:
        return int(at // BUCKET_SECONDS)
