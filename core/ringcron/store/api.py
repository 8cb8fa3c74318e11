"""What the API asks of PostgreSQL: create, read, list and cancel jobs; read runs, skips, workers and lag.

Invariant: nothing here claims or completes; a cancel is decided by one statement. Every call is bounded by a limit on
this side and ends in an answer or in StoreUnavailable; every one may be tried again after a lost connection (a create
has its id and its instants fixed, a cancel that landed answers as a repeat).

Statements by id alone are prepared and get a cached plan; lists get a plan of their own each time, so that filters
which are not asked for fall away and partitions are pruned by the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from ringcron.clock import Clock
from ringcron.errors import JobAlreadyClaimed, JobNotFound
from ringcron.models import EARLIEST, PARKED, Job, JobState, Run, Skip, SkipReason, WorkerReport
from ringcron.slots import created_at_of
from ringcron.store.acting import Acting
from ringcron.store.alerting import Alerting
from ringcron.store.audit import Act, AuditEntry, entry_from_row, parameters_of
from ringcron.store.batching import create_all, create_each
from ringcron.store.calls import ANSWER_SECONDS, PATIENT_SECONDS, STATEMENT_SECONDS
from ringcron.store.connection import Connection, Connections
from ringcron.store.creating import Created, Creation, NewJob, OnConflict, Outcome, insert_many, read_job
from ringcron.store.forecasting import Foreseeing
from ringcron.store.gathering import Gathering
from ringcron.store.keyed import create
from ringcron.store.lag import Lag, lag_by_slot
from ringcron.store.listing import JobFilter, Place, page_queries
from ringcron.store.looking import SEEN_WITHIN_SECONDS, Looking
from ringcron.store.rows import job_from_row, run_from_row, worker_from_row
from ringcron_sql import query
from ringcron_sql.migrate import schema_version

__all__ = [
    "ANSWER_SECONDS",
    "PATIENT_SECONDS",
    "SESSION_OPTIONS",
    "STATEMENT_SECONDS",
    "ApiStore",
    "Cancelled",
    "SkipRecord",
]

SESSION_OPTIONS: Final = "-c jit=off -c max_parallel_workers_per_gather=0"
"""For the connections of an ApiStore: a list for people takes one core at most, and no time to compile."""

_NEWEST: Final = 2**63 - 1
_SLACK: Final = timedelta(days=1)


class Cancelled(StrEnum):
    """What a cancel found."""

    CANCELLED = "cancelled"
    ENDED_BEFORE = "ended_before"  # cancelled or done already


@dataclass(frozen=True, kw_only=True, slots=True)
class SkipRecord:
    """A skip and when it was decided."""

    skip: Skip
    decided_at: datetime


class ApiStore(Acting, Looking, Foreseeing, Alerting):
    """The statements of one API process."""

    def __init__(self, connections: Connections, *, clock: Clock, patient: Connections | None = None) -> None:
        super().__init__(connections, clock=clock, patient=patient)
        self._gathering = Gathering(self._insert_many, seconds=ANSWER_SECONDS)

    async def insert_job(self, new: NewJob, on_conflict: OnConflict) -> tuple[Created, Job]:
        """Store a new job. Raises KeyExists, and JobAlreadyClaimed where a claimed job was to be replaced."""
        if new.definition.key is None and not self._is_within:
            return Created.CREATED, await self._gathering.insert(new)
        tries = 0

        async def work(connection: Connection) -> tuple[Created, Job]:
            nonlocal tries
            tries += 1
            return await create(connection, new, on_conflict, first_try=tries == 1)

        return await self._run(work)

    async def _insert_many(self, together: Sequence[NewJob]) -> list[Job]:
        tries = 0

        async def work(connection: Connection) -> list[Job]:
            nonlocal tries
            tries += 1
            return await insert_many(connection, together, first_try=tries == 1)

        return await self._run(work)

    async def insert_jobs(self, jobs: Sequence[Creation], *, whole: bool) -> list[Outcome]:
        """Store many new jobs, in one transaction.

        `whole`: all of them or none, then raises BatchRefused; else an error stands in the place of each job that could
        not be stored.
        """
        tries = 0

        async def work(connection: Connection) -> list[Outcome]:
            nonlocal tries
            tries += 1
            store_jobs = create_all if whole else create_each
            return await store_jobs(connection, jobs, first_try=tries == 1)

        return await self._run(work, connections=self._patient, seconds=PATIENT_SECONDS) if jobs else []

    async def get_job(self, job_id: UUID) -> Job:
        """Raises JobNotFound."""

        async def work(connection: Connection) -> Job | None:
            return await read_job(connection, job_id)

        job = await self._run(work)
        if job is None:
            raise JobNotFound(f"no job has the id {job_id}")
        return job

    async def cancel_job(self, job_id: UUID, act: Act | None = None) -> Cancelled:
        """Cancel a job that no worker holds. `act`: for the audit log. Raises JobNotFound and JobAlreadyClaimed."""

        async def work(connection: Connection) -> tuple[Any, ...] | None:
            cursor = await connection.execute(query("cancel_job"), {"id": job_id, **parameters_of(act)}, prepare=True)
            return await cursor.fetchone()

        row = await self._run(work)
        if row is None:
            raise JobNotFound(f"no job has the id {job_id}")
        was, cancelled, lease_owner, lease_until, lease_generation = row
        if cancelled:
            return Cancelled.CANCELLED
        if was == JobState.CLAIMED:
            raise JobAlreadyClaimed(
                job_id, lease_owner=lease_owner, lease_until=lease_until, lease_generation=lease_generation
            )
        return Cancelled.ENDED_BEFORE

    async def list_jobs(
        self, wanted: JobFilter, *, after: Place | None, by_time: bool, limit: int, with_payload: bool
    ) -> list[Job]:
        """At most `limit` jobs after `after`: newest first, or `by_time` the soonest first."""
        pages = page_queries(
            wanted, after=after, by_time=by_time, limit=limit, with_payload=with_payload, now=await self.now()
        )
        jobs: list[Job] = []
        for page in pages:
            jobs += [job_from_row(row) for row in await self._rows(page.statement, page.parameters, prepare=False)]
            if len(jobs) >= limit:
                break
        return jobs[:limit]

    async def list_runs(self, job_id: UUID, *, before_generation: int | None, limit: int) -> list[Run]:
        """At most `limit` runs of a job, newest first, the one in progress among them.

        On the first page, raises JobNotFound where there is neither the job nor any run of it.
        """
        parameters = {
            "id": job_id,
            "before": _NEWEST if before_generation is None else before_generation,
            "limit": limit,
            **await self._since_creation(job_id),
        }
        rows = await self._rows(query("list_runs"), parameters, prepare=True)
        if not rows and before_generation is None:
            await self.get_job(job_id)
        return [run_from_row(job_id, row) for row in rows]

    async def list_skips(
        self, job_id: UUID, *, before: tuple[datetime, datetime] | None, limit: int
    ) -> list[SkipRecord]:
        """At most `limit` skips of a job, newest first. `before`: first and decided_at of the last one seen.

        On the first page, raises JobNotFound where there is neither the job nor any skip of it.
        """
        first, decided_at = before or (PARKED, PARKED)
        parameters = {
            "id": job_id,
            "before_first": first,
            "before_decided_at": decided_at,
            "limit": limit,
            **await self._since_creation(job_id),
        }
        rows = await self._rows(query("list_skips"), parameters, prepare=True)
        if not rows and before is None:
            await self.get_job(job_id)
        return [
            SkipRecord(
                skip=Skip(first=row["first"], last=row["last"], count=row["count"], reason=SkipReason(row["reason"])),
                decided_at=row["decided_at"],
            )
            for row in rows
        ]

    async def list_audit(self, job_id: UUID, *, before_id: int | None, limit: int) -> list[AuditEntry]:
        """At most `limit` entries of a job's audit, newest first.

        On the first page, raises JobNotFound where there is neither the job nor any entry of it.
        """
        parameters = {"job_id": job_id, "before": _NEWEST if before_id is None else before_id, "limit": limit}
        rows = await self._rows(query("list_audit_entries"), parameters, prepare=True)
        if not rows and before_id is None:
            await self.get_job(job_id)
        return [entry_from_row(row) for row in rows]

    async def list_workers(self, *, after: str = "", limit: int | None = None) -> list[WorkerReport]:
        """Workers that reported within SEEN_WITHIN_SECONDS, by id; at most `limit` after `after`."""
        parameters = {"after": after, "limit": limit, "seen_within": SEEN_WITHIN_SECONDS}
        return [worker_from_row(row) for row in await self._rows(query("list_workers"), parameters, prepare=True)]

    async def lag(self, handlers: Sequence[str] | None) -> Lag:
        """Due jobs of `handlers` (None: of all) by handler and slot."""
        now = await self.now()

        async def work(connection: Connection) -> Lag:
            return await lag_by_slot(connection, handlers=handlers, now=now)

        return await self._run(work)

    async def schema_version(self) -> int:
        """The version that the database was migrated to; 0: never."""
        return await self._run(schema_version)

    async def _since_creation(self, job_id: UUID) -> dict[str, datetime]:
        """Bounds of a job's claims and decisions: from its creation, which its id tells, to now; a day of slack."""
        now = await self.now()
        try:
            created_at = created_at_of(job_id)
        except (ValueError, OverflowError):  # no id of ours
            created_at = EARLIEST
        return {"from_at": max(EARLIEST, min(created_at, now) - _SLACK), "until_at": now + _SLACK}
