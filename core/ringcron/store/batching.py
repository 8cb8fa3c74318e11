"""Many new jobs in one transaction: what one chunk of a batch does.

Invariant: a chunk lands whole or not at all, but for the jobs that PostgreSQL refuses: these are found by halving, and
every part then lands by itself. Within it later jobs with a key see what earlier ones did with it (`keyed`). A chunk
whose commit was not answered may be tried again: its ids and instants are fixed, and the lock that its first try holds
is waited for, so that a later try finds what landed and stores nothing twice.

Binary COPY because it costs the client a quarter of what arrays for `unnest` cost (4 against 18 µs a row), and the
server no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import orjson
import psycopg
import structlog
from psycopg.types.json import Jsonb

from ringcron.errors import RingcronError, StatementRefused
from ringcron.models import Definition
from ringcron.slots import slot_of
from ringcron.store.connection import Connection
from ringcron.store.creating import Created, Creation, Outcome, Stored
from ringcron.store.keyed import find_landed, settle_keys
from ringcron_sql import query

_log = structlog.get_logger(__name__)

_TYPES: Final = (
    *("uuid", "timestamptz", "int2", "timestamptz", "timestamptz", "timestamptz", "timestamptz", "timestamptz"),
    *("jsonb", "text", "text", "text", "jsonb", "text", "text[]", "int4", "float8", "float8", "float8", "int4"),
    *("float8", "text", "text", "float8", "float8", "text", "text", "text", "text", "float8", "float8"),
)
"""Of the columns of copy_jobs.sql."""
_LOCK_MASK: Final = 2**62 - 1
_BREATH: Final = 500
"""Rows that are encoded in one go."""


class BatchRefused(Exception):
    """Some jobs of a batch that is to be stored whole cannot be: which, by their place in it, and why."""

    def __init__(self, errors: Sequence[tuple[int, RingcronError]]) -> None:
        self.errors = errors
        super().__init__(f"{len(errors)} jobs of a batch refused")


async def create_all(connection: Connection, jobs: Sequence[Creation], *, first_try: bool) -> list[Outcome]:
    """Store every job that can be stored, or BatchRefused and none of them."""
    async with connection.transaction():
        outcomes = await create_each(connection, jobs, first_try=first_try)
        errors = [(place, outcome) for place, outcome in enumerate(outcomes) if isinstance(outcome, RingcronError)]
        if errors:
            raise BatchRefused(errors)
    return outcomes


async def create_each(connection: Connection, jobs: Sequence[Creation], *, first_try: bool) -> list[Outcome]:
    """Store each job that can be stored; an error in the place of each other one."""
    try:
        async with connection.transaction():
            return await _store(connection, jobs, first_try=first_try)
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        if len(jobs) == 1:
            _log.error("a job was refused", job_id=str(jobs[0].id), error=str(error))
            return [StatementRefused()]
        _log.warning("jobs were refused: each half of them is tried by itself", error=str(error), jobs=len(jobs))
    # Inside a transaction a half keeps its locks while the next one takes its own: so the lower keys come first.
    order = sorted(range(len(jobs)), key=lambda place: jobs[place].key or "")
    outcomes: dict[int, Outcome] = {}
    for places in (order[: len(order) // 2], order[len(order) // 2 :]):
        stored = await create_each(connection, [jobs[place] for place in places], first_try=first_try)
        outcomes.update(zip(places, stored, strict=True))
    return [outcomes[place] for place in range(len(jobs))]


async def _store(connection: Connection, jobs: Sequence[Creation], *, first_try: bool) -> list[Outcome]:
    await connection.execute(query("lock_batch"), {"token": jobs[0].id.int & _LOCK_MASK}, prepare=True)
    landed = set() if first_try else await find_landed(connection, [job.id for job in jobs])
    keyed = [job for job in jobs if job.key is not None]
    settled = await settle_keys(connection, keyed, landed=landed, first_try=first_try)
    await _copy(connection, [job for job in jobs if job.key is None and job.id not in landed] + settled.new)
    of_keyed = iter(settled.outcomes)
    return [next(of_keyed) if job.key is not None else _created(job) for job in jobs]


def _created(job: Creation) -> Stored:
    return Stored(what=Created.CREATED, job_id=job.id, next_run_at=job.next_run_at)


async def _copy(connection: Connection, fresh: Sequence[Creation]) -> None:
    if not fresh:
        return
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
    watched = [job.id for job in fresh if job.common.is_watched]
    if watched:
        await connection.execute(query("insert_alerts"), {"ids": watched, "since": fresh[0].created_at})


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
        definition.traceparent,
        definition.tracestate,
        definition.alert_after_late_seconds,
        definition.alert_if_no_success_seconds,
    )
