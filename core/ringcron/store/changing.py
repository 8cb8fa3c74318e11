"""What a person does to a job: lock its row, decide, write, in one transaction.

Invariant: the decision is taken on the row version that is locked, with the database's clock read under that lock; so
of a change and a claim exactly one sees the other. `ringcron.changes` decides; nothing here does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from ringcron.changes import Change
from ringcron.errors import JobNotFound
from ringcron.models import Job, JobState
from ringcron.store.audit import Act, record
from ringcron.store.connection import Connection
from ringcron.store.creating import definition_parameters, read_job
from ringcron.undecided import waits_unattempted
from ringcron_sql import query

Decide = Callable[[Job, datetime], Change]
"""From the job as it is and the database's now to the change. Raises what refuses it."""


async def change_job(
    connection: Connection, job_id: UUID, decide: Decide, act: Act | None = None
) -> tuple[Job, Change]:
    """The job after the change. Raises JobNotFound and whatever `decide` raises; then nothing is written.

    `act`: who does what, for the audit log.
    """
    async with connection.transaction():
        return await change_locked(connection, job_id, decide, act)


async def change_locked(
    connection: Connection, job_id: UUID, decide: Decide, act: Act | None = None
) -> tuple[Job, Change]:
    """The same inside a transaction of the caller's."""
    cursor = await connection.execute(query("lock_job"), {"id": job_id}, prepare=True)
    held = await cursor.fetchone()
    job = None if held is None else await read_job(connection, job_id)
    if held is None or job is None:
        raise JobNotFound(f"no job has the id {job_id}")
    if waits_unattempted(job.cause, job.attempt):
        cursor = await connection.execute(query("find_handed_back"), {"ids": [job_id]})
        job = dataclasses.replace(job, begun=await cursor.fetchone() is not None)
    change = decide(job, held[3])
    await connection.execute(query("change_job"), _parameters(change, held_next_run_at=held[0]))
    if act is not None:
        await record(connection, act, job_id=job_id)
    after = await read_job(connection, job_id)
    assert after is not None
    return after, change


def _parameters(change: Change, *, held_next_run_at: datetime) -> dict[str, Any]:
    job = change.job
    definition = definition_parameters(job.definition)
    if isinstance(job.definition.payload, orjson.Fragment):
        definition["payload"] = None  # as it was read: the stored one stays
    return {
        **definition,
        "id": job.id,
        "held_next_run_at": held_next_run_at,
        "state": job.state.value,
        "next_run_at": job.next_run_at if job.state is JobState.DUE else None,
        "scheduled_for": job.scheduled_for,
        "cause": job.cause.value,
        "attempt": job.attempt,
        "lost": job.lost,
        "decided_until": job.decided_until,
        "kept": None if not job.kept else list(job.kept),
        "cancel_requested": job.cancel_requested,
        "after_current": None if job.after_current is None else orjson.dumps(job.after_current).decode(),
        "revision": job.revision,
        "pause_reason": job.pause_reason,
        "paused_by": job.paused_by,
        "dead_reason": job.dead_reason,
        "reaped": change.reaped,
        "released": change.released,
        "skips": orjson.dumps(change.skips).decode(),
    }
