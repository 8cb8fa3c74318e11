"""Many new jobs in one transaction: what one chunk of a batch does.

Invariant: of a chunk's jobs those without a key, and those whose key nobody had, land together or not at all. A chunk
whose commit was not answered may be tried again: its ids and instants are fixed, and the lock that its first try holds
is waited for, so that a later try finds what landed and stores nothing twice. Jobs whose key was taken follow singly.

Binary COPY because it costs the client a quarter of what arrays for `unnest` cost (4 against 18 µs a row), and the
server no more. A value that PostgreSQL refuses refuses the whole COPY; then every job of the chunk is tried by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
import psycopg
import structlog
from psycopg.types.json import Jsonb

from ringcron.errors import JobAlreadyClaimed, KeyExists, RingcronError, StatementRefused
from ringcron.models import Definition
from ringcron.slots import slot_of
from ringcron.store.connection import Connection
from ringcron.store.creating import Created, Creation, create
from ringcron_sql import query

_log = structlog.get_logger(__name__)

_TYPES: Final = (
    *("uuid", "timestamptz", "int2", "timestamptz", "timestamptz", "timestamptz", "timestamptz", "timestamptz"),
    *("jsonb", "text", "text", "text", "jsonb", "text", "text[]", "int4", "float8", "float8", "float8", "int4"),
    *("float8", "text", "text", "float8", "float8", "text", "text"),
)
"""Of the columns of copy_jobs.sql."""
_LOCK_MASK: Final = 2**62 - 1
_BREATH: Final = 500
"""Rows that are encoded in one go."""


class BatchStored(NamedTuple):
    """What became of one job of a batch."""

    what: Created
    job_id: UUID
    next_run_at: datetime | None


BatchOutcome = BatchStored | RingcronError


class BatchRefused(Exception):
    """Some jobs of a batch that is to be stored whole cannot be: which, by their place in it, and why."""

    def __init__(self, errors: Sequence[tuple[int, RingcronError]]) -> None:
        self.errors = errors
        super().__init__(f"{len(errors)} jobs of a batch refused")


async def create_all(connection: Connection, jobs: Sequence[Creation], *, first_try: bool) -> list[BatchOutcome]:
    """Store every job that can be stored, or BatchRefused and none of them."""
    async with connection.transaction():
        stored = await _bulk(connection, jobs, first_try=first_try)
        outcomes = await _one_by_one(connection, jobs, stored, first_try=first_try)
        errors = [(place, outcome) for place, outcome in enumerate(outcomes) if isinstance(outcome, RingcronError)]
        if errors:
            raise BatchRefused(errors)
    return outcomes


async def create_each(connection: Connection, jobs: Sequence[Creation], *, first_try: bool) -> list[BatchOutcome]:
    """Store each job that can be stored; an error in the place of each other one."""
    try:
        async with connection.transaction():
            stored = await _bulk(connection, jobs, first_try=first_try)
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        _log.warning("a chunk was refused: each of its jobs is tried by itself", error=str(error), jobs=len(jobs))
        stored = [None] * len(jobs)
    return await _one_by_one(connection, jobs, stored, first_try=first_try)


async def _bulk(connection: Connection, jobs: Sequence[Creation], *, first_try: bool) -> list[BatchStored | None]:
    """Store what nothing stands against; None for each job whose key was taken."""
    ids = [job.id for job in jobs]
    await connection.execute(query("lock_batch"), {"token": ids[0].int & _LOCK_MASK}, prepare=True)
    landed = set() if first_try else await _ids(connection, "find_landed_jobs", {"ids": ids})
    keyed = [job for job in jobs if job.key is not None and job.id not in landed]
    taken = set() if not keyed else await _ids(connection, "take_keys", _keys_of(keyed))
    fresh = [job for job in jobs if job.id not in landed and (job.key is None or job.id in taken)]
    if fresh:
        await _copy(connection, fresh)
    stored = landed.union(job.id for job in fresh)
    return [
        BatchStored(what=Created.CREATED, job_id=job.id, next_run_at=job.next_run_at) if job.id in stored else None
        for job in jobs
    ]


async def _one_by_one(
    connection: Connection,
    jobs: Sequence[Creation],
    stored: Sequence[BatchStored | None],
    *,
    first_try: bool,
) -> list[BatchOutcome]:
    """Store what the bulk left; in the order of their keys, so that two batches do not wait for each other."""
    filled: list[BatchOutcome | None] = [*stored]
    left = [place for place, outcome in enumerate(stored) if outcome is None]
    for place in sorted(left, key=lambda place: (jobs[place].key or "", place)):
        filled[place] = await _one(connection, jobs[place], first_try=first_try)
    return [outcome for outcome in filled if outcome is not None]


async def _one(connection: Connection, job: Creation, *, first_try: bool) -> BatchOutcome:
    try:
        async with connection.transaction():
            what, stored = await create(connection, job.new, job.on_conflict, first_try=first_try)
    except (KeyExists, JobAlreadyClaimed) as error:
        return error
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        _log.error("a job was refused", job_id=str(job.id), error=str(error))
        return StatementRefused()
    return BatchStored(what=what, job_id=stored.id, next_run_at=stored.next_run_at)


async def _copy(connection: Connection, fresh: Sequence[Creation]) -> None:
    shared: dict[int, tuple[Any, ...]] = {}
    async with connection.cursor() as cursor, cursor.copy(query("copy_jobs")) as copy:
        copy.set_types(_TYPES)
        for number, job in enumerate(fresh):
            common = shared.get(id(job.common))
            if common is None:
                common = shared[id(job.common)] = _common_columns(job.common)
            await copy.write_row(_own_columns(job) + common)
            if number % _BREATH == 0:
                await asyncio.sleep(0)  # others are answered meanwhile
    tagged = [(tag, job.id) for job in fresh for tag in job.common.tags]
    if tagged:
        tags, ids = zip(*tagged, strict=True)
        await connection.execute(query("insert_tags"), {"tags": list(tags), "ids": list(ids)})


def _own_columns(job: Creation) -> tuple[Any, ...]:
    at = job.created_at
    payload = Jsonb(job.payload, orjson.dumps)
    return (job.id, job.next_run_at, slot_of(job.id), job.scheduled_for, at, at, at, job.run_at, payload, job.key)


def _common_columns(definition: Definition) -> tuple[Any, ...]:
    retry = definition.retry
    return (
        "due",
        definition.handler,
        None if definition.schedule is None else Jsonb(definition.schedule, orjson.dumps),
        definition.name,
        list(definition.tags),
        retry.max_attempts,
        retry.min_backoff_seconds,
        retry.max_backoff_seconds,
        retry.multiplier,
        retry.max_lost,
        definition.timeout_seconds,
        definition.overlap.value,
        definition.catchup.value,
        definition.catchup_window_seconds,
        definition.jitter_seconds,
        definition.on_exhausted.value,
        definition.tzdata,
    )


def _keys_of(keyed: Sequence[Creation]) -> dict[str, Any]:
    return {"keys": [job.key for job in keyed], "ids": [job.id for job in keyed]}


async def _ids(connection: Connection, name: str, parameters: dict[str, Any]) -> set[UUID]:
    cursor = await connection.execute(query(name), parameters, prepare=True)
    return {row[0] for row in await cursor.fetchall()}
