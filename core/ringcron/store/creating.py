"""New jobs: what is stored of them, and the one statement that stores a few.

Invariant: a job is stored with every value fixed. So a create may be tried again after a commit whose answer was lost:
its id and its instants are the same, and a later try finds what the first one wrote. `first_try` False makes it look
before it writes. Whose a key is stands in `keyed`; many jobs at a time are stored by `batching`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from psycopg.rows import dict_row

from ringcron.errors import RingcronError
from ringcron.going import first_run_at
from ringcron.models import Cause, Definition, Job, JobState
from ringcron.slots import slot_of
from ringcron.store.connection import Connection
from ringcron.store.rows import job_from_row, passed_on
from ringcron_sql import query


class OnConflict(StrEnum):
    """What a create does when its key belongs to a job already."""

    ERROR = "error"
    KEEP = "keep"
    REPLACE = "replace"


class Created(StrEnum):
    """What a create did."""

    CREATED = "created"
    KEPT = "kept"
    REPLACED = "replaced"


class Stored(NamedTuple):
    """What became of a create: what it did, with which job, and when that job is next due (None: paused or ended)."""

    what: Created
    job_id: UUID
    next_run_at: datetime | None


Outcome = Stored | RingcronError


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job to be stored, every value of it fixed.

    `created_at` is the database's clock as last read; ticks up to it are decided. `decided_at`: the clock under the
    lock of the job that it replaces; then ticks up to that are.
    """

    id: UUID
    definition: Definition
    created_at: datetime
    scheduled_for: datetime
    decided_at: datetime | None = None

    @property
    def now(self) -> datetime:
        """The instant up to which ticks are decided."""
        return self.decided_at or self.created_at

    @property
    def next_run_at(self) -> datetime:
        """When it is first due; never before `now`."""
        return self.next_run_at_as(self.id)

    def next_run_at_as(self, job_id: UUID) -> datetime:
        """The same where it replaces the job of that id, whose jitter it then has."""
        return first_run_at(job_id, self.definition, self.scheduled_for, self.now)


class Creation(NamedTuple):
    """A job to be stored and what to do if its key is taken.

    `common` is what it shares with other jobs of its batch: a definition but for the members that stand here. A tuple,
    because ten thousand of them are made for one call.
    """

    id: UUID
    common: Definition
    run_at: datetime | None
    key: str | None
    payload: Any
    created_at: datetime
    scheduled_for: datetime
    on_conflict: OnConflict
    decided_at: datetime | None = None

    @classmethod
    def of(cls, new: NewJob, on_conflict: OnConflict) -> Creation:
        """The same job, by itself."""
        definition = new.definition
        return cls(
            id=new.id,
            common=definition,
            run_at=definition.run_at,
            key=definition.key,
            payload=definition.payload,
            created_at=new.created_at,
            scheduled_for=new.scheduled_for,
            on_conflict=on_conflict,
        )

    @property
    def next_run_at(self) -> datetime:
        """When it is first due."""
        return first_run_at(self.id, self.common, self.scheduled_for, self.decided_at or self.created_at)

    @property
    def new(self) -> NewJob:
        """The job by itself."""
        return NewJob(
            id=self.id,
            definition=replace(self.common, run_at=self.run_at, key=self.key, payload=self.payload),
            created_at=self.created_at,
            scheduled_for=self.scheduled_for,
            decided_at=self.decided_at,
        )


async def read_job(connection: Connection, job_id: UUID) -> Job | None:
    """The job of that id as it stands now."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("get_job"), {"id": job_id}, prepare=True)
        row = await cursor.fetchone()
    return None if row is None else job_from_row(row)


async def insert_many(connection: Connection, together: Sequence[NewJob], *, first_try: bool) -> list[Job]:
    """Store new jobs, whose keys the caller has taken, in one statement."""
    left = list(together)
    jobs: dict[UUID, Job] = {}
    if not first_try:
        jobs = await _landed(connection, left)
        left = [new for new in left if new.id not in jobs]
    records = orjson.dumps([record_of(new, new.id) for new in left]).decode()
    cursor = await connection.execute(query("insert_jobs"), {"jobs": records}, prepare=True)
    payloads: dict[UUID, str] = dict(await cursor.fetchall())
    jobs |= {new.id: _as_stored(new, payload=payloads[new.id]) for new in left if new.id in payloads}
    # The first try was still in flight when this one began, and has landed meanwhile.
    jobs |= await _landed(connection, [new for new in left if new.id not in payloads])
    return [jobs[new.id] for new in together]


async def _landed(connection: Connection, together: Sequence[NewJob]) -> dict[UUID, Job]:
    found = [await read_job(connection, new.id) for new in together]
    return {job.id: job for job in found if job is not None}


def record_of(new: NewJob, job_id: UUID) -> dict[str, Any]:
    """A job, with the id that it has or gets, as a row of insert_jobs.sql or replace_jobs.sql."""
    definition = new.definition
    retry = definition.retry
    return {
        "id": job_id,
        "next_run_at": new.next_run_at_as(job_id),
        "slot": slot_of(job_id),
        "handler": definition.handler,
        "scheduled_for": new.scheduled_for,
        "created_at": new.created_at,
        "schedule": definition.schedule,
        "run_at": definition.run_at,
        "payload": definition.payload,
        "key": definition.key,
        "name": definition.name,
        "tags": definition.tags,
        "max_attempts": retry.max_attempts,
        "min_backoff": retry.min_backoff_seconds,
        "max_backoff": retry.max_backoff_seconds,
        "multiplier": retry.multiplier,
        "max_lost": retry.max_lost,
        "timeout": definition.timeout_seconds,
        "overlap": definition.overlap,
        "catchup": definition.catchup,
        "catchup_window": definition.catchup_window_seconds,
        "jitter": definition.jitter_seconds,
        "on_exhausted": definition.on_exhausted,
        "tzdata": definition.tzdata,
        "traceparent": definition.traceparent,
        "tracestate": definition.tracestate,
        "alert_after_late": definition.alert_after_late_seconds,
        "alert_if_no_success": definition.alert_if_no_success_seconds,
    }


def definition_parameters(definition: Definition) -> dict[str, Any]:
    """A definition as the parameters of a statement that stores it."""
    retry = definition.retry
    return {
        "handler": definition.handler,
        "schedule": None if definition.schedule is None else orjson.dumps(definition.schedule).decode(),
        "run_at": definition.run_at,
        "payload": orjson.dumps(definition.payload).decode(),
        "key": definition.key,
        "name": definition.name,
        "tags": list(definition.tags),
        "max_attempts": retry.max_attempts,
        "min_backoff": retry.min_backoff_seconds,
        "max_backoff": retry.max_backoff_seconds,
        "multiplier": retry.multiplier,
        "max_lost": retry.max_lost,
        "timeout": definition.timeout_seconds,
        "overlap": definition.overlap.value,
        "catchup": definition.catchup.value,
        "catchup_window": definition.catchup_window_seconds,
        "jitter": definition.jitter_seconds,
        "on_exhausted": definition.on_exhausted.value,
        "tzdata": definition.tzdata,
        "traceparent": definition.traceparent,
        "tracestate": definition.tracestate,
        "alert_after_late": definition.alert_after_late_seconds,
        "alert_if_no_success": definition.alert_if_no_success_seconds,
    }


def _as_stored(new: NewJob, *, payload: str) -> Job:
    """A row that was just inserted: every value is known, but for the form that jsonb gave the payload."""
    return Job(
        id=new.id,
        slot=slot_of(new.id),
        state=JobState.DUE,
        definition=replace(new.definition, payload=passed_on(payload)),
        next_run_at=new.next_run_at,
        scheduled_for=new.scheduled_for,
        cause=Cause.SCHEDULE,
        attempt=0,
        lost=0,
        occurrences=0,
        decided_until=new.created_at,
        kept=None,
        lease_owner=None,
        lease_until=None,
        lease_generation=0,
        claimed_at=None,
        cancel_requested=False,
        after_current=None,
        revision=1,
        pause_reason=None,
        paused_by=None,
        dead_reason=None,
        created_at=new.created_at,
        updated_at=new.created_at,
    )
