"""The database's side of a history: the audit trigger, and what it and ringcron's own tables say at the end.

Invariant: the trigger is put in by a chaos run and by nothing else. It writes within the transaction of each change, so
what was rolled back is not there, and what was committed is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from loadtest.chaos.history import Run, Skip, Version
from loadtest.database import Database


class Said(NamedTuple):
    """All that one server says, which was the one that takes writes until `until` (elapsed seconds)."""

    until: float
    versions: Sequence[Version]
    runs: Sequence[Run]
    skips: Sequence[Skip]
    named: Mapping[str, tuple[str, float]]
    """By name: the job, and when it was created."""


def read_said(database: Database, until: float) -> Said:
    """Read everything."""
    return Said(until, read_versions(database), read_runs(database), read_skips(database), read_named(database))


def install_audit(database: Database) -> None:
    """Record every change of a job from now on. The database must be migrated and not audited yet."""
    database.run("chaos/install_audit")


def read_versions(database: Database) -> list[Version]:
    """Every version of every job."""
    return versions_from(database.run("chaos/read_audit"))


def read_named(database: Database) -> dict[str, tuple[str, float]]:
    """By name: the job, and when it was created."""
    return {name: (job, created_at) for name, job, created_at, _ in database.run("chaos/read_jobs")}


def read_runs(database: Database) -> list[Run]:
    """Every row of `runs`."""
    return [
        Run(
            job=job,
            generation=generation,
            claimed_at=claimed_at,
            finished_at=finished_at,
            attempt=attempt,
            scheduled_for=scheduled_for,
            cause=cause,
            worker=worker,
            outcome=outcome,
        )
        for job, generation, claimed_at, finished_at, attempt, scheduled_for, cause, worker, outcome in database.run(
            "chaos/read_runs"
        )
    ]


def read_skips(database: Database) -> list[Skip]:
    """Every row of `skips`."""
    return [
        Skip(job=job, first=first, last=last, count=count, reason=reason, decided_at=decided_at)
        for job, first, last, count, reason, decided_at in database.run("chaos/read_skips")
    ]


def versions_from(rows: Iterable[Sequence[Any]]) -> list[Version]:
    """Rows of read_audit.sql as versions. A row that moved to another partition, a delete and an insert of one
    transaction, is one update."""
    versions: list[Version] = []
    moving: dict[str, tuple[str, int]] = {}
    """By job: the transaction that deleted it last, and where that version stands."""
    for seq, at, txid, change, job, *row in rows:
        version = _version(seq, at, change, job, row)
        if change == "insert" and job in moving and moving[job][0] == txid:
            versions[moving.pop(job)[1]] = _version(seq, at, "update", job, row)
            continue
        if change == "delete":
            moving[job] = (txid, len(versions))
        versions.append(version)
    return versions


def _version(seq: int, at: float, change: Any, job: str, row: Sequence[Any]) -> Version:
    state, generation, owner, lease_until, next_run_at, scheduled_for, cause, attempt, slot, writer = row
    return Version(
        seq=seq,
        at=at,
        job=job,
        change=change,
        state=state,
        generation=generation,
        owner=owner,
        lease_until=lease_until,
        next_run_at=next_run_at,
        scheduled_for=scheduled_for,
        cause=cause,
        attempt=attempt,
        slot=slot,
        writer=writer,
    )
