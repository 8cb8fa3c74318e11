"""The run rows of a test, read from the database when it is over.

Invariant: these are the database's own words: when each run was claimed, when it started and ended, and how. All
instants are Unix seconds of the database's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from loadtest.database import Database
from loadtest.starts import Start


class RunRow(NamedTuple):
    """One row of `runs`."""

    job_id: UUID
    lease_generation: int
    attempt: int
    scheduled_for: float
    worker_id: str
    claimed_at: float
    started_at: float
    finished_at: float
    outcome: str


class Started(NamedTuple):
    """The start of a run, on the database's clock."""

    job_id: UUID
    scheduled_for: float
    at: float


def read_runs(database: Database, *, since: float) -> list[RunRow]:
    """Every run claimed at or after `since`, in order of claim."""
    return [RunRow(*row) for row in database.run("read_runs", since=datetime.fromtimestamp(since, UTC))]


def written_starts(starts: Iterable[Start], clock_offset: float) -> list[Started]:
    """What handlers wrote down, carried over to the database's clock."""
    return [Started(start.job_id, start.scheduled_for, start.at + clock_offset) for start in starts]


def recorded_starts(runs: Iterable[RunRow]) -> list[Started]:
    """What run rows say, where handlers could not write anything down."""
    return [Started(run.job_id, run.scheduled_for, run.started_at) for run in runs]
