"""A new job, with or without a key: what one transaction of a create does.

Invariant: at most one job that is neither cancelled nor gone holds a key. The row of the key is locked before its job
is looked at, in a statement of its own, so that of many creates with one key each sees what the one before it did.

A create may be tried again after a commit whose answer was lost: its id and its instants are fixed before the first
try, so that a later try finds what the first one wrote. `first_try` False makes it look before it writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import structlog
from psycopg.rows import dict_row

from ringcron.changes import skip_between
from ringcron.errors import JobAlreadyClaimed, KeyExists, ScheduleError
from ringcron.going import first_run_at
from ringcron.models import Cause, Definition, Job, JobState, Skip, SkipReason
from ringcron.slots import slot_of
from ringcron.store.connection import Connection
from ringcron.store.rows import job_from_row, passed_on
from ringcron_sql import query

_log = structlog.get_logger(__name__)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job to be stored, every value of it fixed.

    `created_at` is the database's clock as last read; ticks up to it are decided.
    """

    id: UUID
    definition: Definition
    created_at: datetime
    scheduled_for: datetime

    @property
    def next_run_at(self) -> datetime:
        """When it is first due; never before `created_at`."""
        return self.next_run_at_as(self.id)

    def next_run_at_as(self, job_id: UUID) -> datetime:
        """The same where it replaces the job of that id, whose jitter it then has."""
        return first_run_at(job_id, self.definition, self.scheduled_for, self.created_at)


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

    @property
    def next_run_at(self) -> datetime:
        """When it is first due."""
        return first_run_at(self.id, self.common, self.scheduled_for, self.created_at)

    @property
    def new(self) -> NewJob:
        """The job by itself."""
        return NewJob(
            id=self.id,
            definition=replace(self.common, run_at=self.run_at, key=self.key, payload=self.payload),
            created_at=self.created_at,
            scheduled_for=self.scheduled_for,
        )


async def read_job(connection: Connection, job_id: UUID) -> Job | None:
    """The job of that id as it stands now."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("get_job"), {"id": job_id}, prepare=True)
        row = await cursor.fetchone()
    return None if row is None else job_from_row(row)


async def create(
    connection: Connection, new: NewJob, on_conflict: OnConflict, *, first_try: bool
) -> tuple[Created, Job]:
    """Store the job, or do with its key what `on_conflict` says. Raises KeyExists and JobAlreadyClaimed."""
    if new.definition.key is None:
        return Created.CREATED, await _insert(connection, new, first_try=first_try)
    async with connection.transaction():
        return await _create_keyed(connection, new, new.definition.key, on_conflict, first_try=first_try)


async def _create_keyed(
    connection: Connection, new: NewJob, key: str, on_conflict: OnConflict, *, first_try: bool
) -> tuple[Created, Job]:
    cursor = await connection.execute(query("hold_key"), {"key": key, "id": new.id})
    row = await cursor.fetchone()
    assert row is not None
    holder: UUID = row[0]
    if holder == new.id:
        return Created.CREATED, await _insert(connection, new, first_try=first_try)
    existing = await read_job(connection, holder)
    if existing is not None and existing.state is not JobState.CANCELLED:
        if on_conflict is OnConflict.ERROR:
            raise KeyExists(key, holder)
        if on_conflict is OnConflict.KEEP:
            return Created.KEPT, existing
        if not first_try and existing.updated_at == new.created_at:
            return Created.REPLACED, existing
        replaced = await _replace(connection, holder, new)
        if replaced is not None:
            return Created.REPLACED, replaced
    await connection.execute(query("point_key"), {"key": key, "id": new.id})
    return Created.CREATED, await _insert(connection, new, first_try=True)


async def _insert(connection: Connection, new: NewJob, *, first_try: bool) -> Job:
    if not first_try:
        landed = await read_job(connection, new.id)
        if landed is not None:
            return landed
    cursor = await connection.execute(query("insert_job"), _parameters(new.id, new), prepare=True)
    row = await cursor.fetchone()
    if row is None:  # the first try was still in flight when this one began, and has landed meanwhile
        landed = await read_job(connection, new.id)
        assert landed is not None
        return landed
    return as_stored(new, payload=row[0])


async def _replace(connection: Connection, job_id: UUID, new: NewJob) -> Job | None:
    """The job with the new definition; None where it was cancelled or has gone meanwhile."""
    cursor = await connection.execute(query("lock_job"), {"id": job_id}, prepare=True)
    held = await cursor.fetchone()
    old = None if held is None else await read_job(connection, job_id)
    if held is None or old is None or old.state is JobState.CANCELLED:
        return None
    held_next_run_at, claimed, lapsed, _ = held
    if claimed and not lapsed:
        assert old.lease_owner is not None
        raise JobAlreadyClaimed(
            job_id,
            lease_owner=old.lease_owner,
            lease_until=old.lease_until,
            lease_generation=old.lease_generation,
        )
    parameters = {
        **_parameters(job_id, new),
        "held_next_run_at": held_next_run_at,
        **skip_parameters(passed_ticks(old, new.created_at)),
    }
    await connection.execute(query("replace_job"), parameters)
    return await read_job(connection, job_id)


def passed_ticks(job: Job, now: datetime) -> Skip | None:
    """The ticks up to `now` that nothing has decided and that a new definition will not run."""
    if job.state is JobState.DONE:
        return None
    reasons = {JobState.PAUSED: SkipReason.PAUSED, JobState.DEAD: SkipReason.DEAD}
    reason = reasons.get(job.state, SkipReason.RESCHEDULED)
    try:
        return skip_between(job.definition.schedule, job.decided_until, now, reason)
    except ScheduleError as fault:
        _log.warning("the old schedule cannot be read: no skip is written", job_id=str(job.id), fault=str(fault))
        return None


def skip_parameters(skip: Skip | None) -> dict[str, Any]:
    """A skip as the parameters of a statement that writes one; a count of 0 writes none."""
    return {
        "skip_first": None if skip is None else skip.first,
        "skip_last": None if skip is None else skip.last,
        "skip_count": 0 if skip is None else skip.count,
        "skip_reason": None if skip is None else skip.reason.value,
    }


def _parameters(job_id: UUID, new: NewJob) -> dict[str, Any]:
    return {
        **definition_parameters(new.definition),
        "id": job_id,
        "next_run_at": new.next_run_at_as(job_id),
        "slot": slot_of(job_id),
        "scheduled_for": new.scheduled_for,
        "created_at": new.created_at,
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
    }


def as_stored(new: NewJob, *, payload: str) -> Job:
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
