"""The client: one method for each call of the API.

Invariants: values are typed and frozen, instants aware, durations timedeltas. A call that makes something (create,
trigger, redrive) carries an Idempotency-Key, so that its tries make it once; give your own where a later call must be
the same one. Every method raises ApiError and Unreachable (`ringcron.client.errors`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, Self, TypeVar, Unpack

from pydantic import ValidationError

from ringcron.client.errors import Misdirected
from ringcron.client.history import AuditEntry, Run, Skip
from ringcron.client.jobs import (
    BatchResult,
    CreatedJob,
    Explanation,
    Job,
    JobChanges,
    NewJob,
    Redriven,
    StoppingRun,
)
from ringcron.client.outlook import Autoscale, Forecast
from ringcron.client.pages import Listing, Page
from ringcron.client.parameters import fresh_key, id_in_path, merge_patch_of, query_of
from ringcron.client.pool import Shards, Worker
from ringcron.client.schedules import Cron, Every, Preview
from ringcron.client.transport import MERGE_PATCH, NDJSON, Answer, Request, Transport, json_content
from ringcron.client.values import document_of, read
from ringcron.clock import Clock, SystemClock
from ringcron.models import JobState

V = TypeVar("V")

DEFAULT_TIMEOUT: Final = timedelta(seconds=30)
_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Client:
    """A ringcron API.

    `timeout` bounds a call with all its tries; `tries` bounds their number (None: as many as fit). What may succeed
    later is tried again by itself: no connection, 429, 503.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout: timedelta = DEFAULT_TIMEOUT,
        tries: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Opens no connection yet. Raises ConfigError where the address or the key cannot be one."""
        self._transport = Transport(base_url, api_key, timeout=timeout, tries=tries, clock=clock or SystemClock())

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def create_job(self, job: NewJob, *, dry_run: bool = False, idempotency_key: str | None = None) -> CreatedJob:
        """Create a job. With `dry_run` nothing is stored: the answer says what would be."""
        answer = await self._call(
            "POST",
            "/jobs",
            query=query_of(dryRun=dry_run or None),
            content=json_content(document_of(job)),
            idempotency_key=idempotency_key or fresh_key(),
        )
        return replace(self._read(CreatedJob, answer.body), created=answer.status == 201)

    async def now(self) -> datetime:
        """The database's clock, which decides what is due. To run a job in a minute: `await client.now() + …`."""
        return (await self.create_job(NewJob(run_at=_LONG_AGO), dry_run=True)).created_at

    async def create_jobs(
        self,
        jobs: Iterable[NewJob],
        *,
        atomic: bool = False,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> tuple[BatchResult, ...]:
        """Create up to 10,000 jobs in one call. What became of each, in their order.

        A job that is refused leaves the others alone; with `atomic` one such job is a ValidationFailed with a pointer
        such as /3/handler, and nothing is stored.
        """
        answer = await self._call(
            "POST",
            "/jobs/batch",
            query=query_of(atomic=atomic or None, dryRun=dry_run or None),
            content=b"\n".join(json_content(document_of(job)) for job in jobs),
            media_type=NDJSON,
            idempotency_key=idempotency_key or fresh_key(),
            slow=True,
        )
        return self._read(tuple[BatchResult, ...], answer.body)

    async def get_job(self, job_id: str) -> Job:
        """The job; one that has ended too, until it leaves with retention."""
        return self._read(Job, (await self._call("GET", f"/jobs/{id_in_path(job_id)}")).body)

    def list_jobs(
        self,
        *,
        state: JobState | None = None,
        tag: str | None = None,
        handler: str | None = None,
        name: str | None = None,
        due_before: datetime | None = None,
        due_after: datetime | None = None,
        order: Literal["job_id", "next_run_at"] = "job_id",
        include_payload: bool = False,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Job]:
        """The jobs that fit, newest first; each once, whatever is written meanwhile.

        By `next_run_at`: soonest first, a moving view.
        """
        query = query_of(
            state=state,
            tag=tag,
            handler=handler,
            name=name,
            dueBefore=due_before,
            dueAfter=due_after,
            order="nextRunAt" if order == "next_run_at" else None,
            include="payload" if include_payload else None,
            limit=page_size,
        )
        return self._documents(Job, "/jobs", query, cursor)

    def runs(self, job_id: str, *, page_size: int | None = None, cursor: str | None = None) -> Listing[Run]:
        """The runs of a job, newest first, the one in progress before all."""
        return self._arrays(Run, f"/jobs/{id_in_path(job_id)}/runs", query_of(limit=page_size), cursor)

    def skips(self, job_id: str, *, page_size: int | None = None, cursor: str | None = None) -> Listing[Skip]:
        """The ticks of a job that were deliberately not run, newest first."""
        return self._arrays(Skip, f"/jobs/{id_in_path(job_id)}/skips", query_of(limit=page_size), cursor)

    def audit(self, job_id: str, *, page_size: int | None = None, cursor: str | None = None) -> Listing[AuditEntry]:
        """What callers did to a job, newest first."""
        return self._arrays(AuditEntry, f"/jobs/{id_in_path(job_id)}/audit", query_of(limit=page_size), cursor)

    async def cancel_job(self, job_id: str, *, after_current: bool = False) -> bool:
        """Cancel a job. True: nothing will start any more. JobClaimed where a worker had claimed it.

        With `after_current` a claimed job is cancelled when its run has ended; then the answer is False.
        """
        query = query_of(afterCurrent=after_current or None)
        return (await self._call("DELETE", f"/jobs/{id_in_path(job_id)}", query=query)).status == 204

    async def patch_job(self, job_id: str, *, after_current: bool = False, **changes: Unpack[JobChanges]) -> Job:
        """Change what is given; None sets the default; an object in `payload` is merged (RFC 7396).

        Of `schedule` and `run_at` the one that is given takes the place of the other. Under a run such a change is
        JobClaimed, or waits for the end of the run with `after_current`.
        """
        return await self._patch(job_id, merge_patch_of(changes), after_current=after_current)

    async def pause(self, job_id: str, reason: str | None = None) -> Job:
        """Let the job rest. One that is claimed finishes its attempt first: then the job is still claimed."""
        return await self._patch(job_id, {"paused": True, "pauseReason": reason})

    async def resume(self, job_id: str) -> Job:
        """End a pause, also one that waits for a run."""
        return await self._patch(job_id, {"paused": False})

    async def trigger(self, job_id: str, *, idempotency_key: str | None = None) -> Job:
        """Run the job once, now, or after the run in progress."""
        return await self._make(f"/jobs/{id_in_path(job_id)}/trigger", idempotency_key)

    async def redrive(self, job_id: str, *, idempotency_key: str | None = None) -> Job:
        """Run a dead job again, with all its attempts."""
        return await self._make(f"/jobs/{id_in_path(job_id)}/redrive", idempotency_key)

    async def redrive_all(
        self,
        *,
        handler: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
        per_second: float | None = None,
        idempotency_key: str | None = None,
    ) -> Redriven:
        """Redrive the dead jobs that fit, so many a second."""
        query = query_of(handler=handler, tag=tag, limit=limit, perSecond=per_second)
        answer = await self._call(
            "POST", "/jobs/redrive", query=query, idempotency_key=idempotency_key or fresh_key(), slow=True
        )
        return self._read(Redriven, answer.body)

    async def cancel_run(self, run_id: str) -> str:
        """Ask its worker to stop a run; the worker's id. Whether it did shows in the run's outcome.

        RunFinished where the run had ended: by itself, or by an earlier try of this call whose answer was lost.
        """
        answer = await self._call("POST", f"/runs/{id_in_path(run_id)}/cancel")
        return self._read(StoppingRun, answer.body).worker_id

    async def explain(self, job_id: str) -> Explanation:
        """Why the job has not run yet."""
        return self._read(Explanation, (await self._call("GET", f"/jobs/{id_in_path(job_id)}/explain")).body)

    async def preview(
        self, schedule: Cron | Every, *, after: datetime | None = None, count: int | None = None
    ) -> Preview:
        """The next ticks of a schedule, strictly after `after` (None: now). NeverFires where it has none."""
        body: dict[str, Any] = {"schedule": document_of(schedule), **query_of(after=after)}
        if count is not None:
            body["count"] = count
        return self._read(Preview, (await self._call("POST", "/schedules/preview", content=json_content(body))).body)

    async def shards(self) -> Shards:
        """Who owns which slots, and how late they are."""
        return self._read(Shards, (await self._call("GET", "/shards")).body)

    def workers(self, *, page_size: int | None = None, cursor: str | None = None) -> Listing[Worker]:
        """The workers that reported within 15 seconds."""
        return self._documents(Worker, "/workers", query_of(limit=page_size), cursor)

    async def forecast(self, *, horizon: timedelta | None = None, handler: str | None = None) -> Forecast:
        """What becomes due within `horizon` (None: an hour), and when it clears."""
        query = query_of(horizon=horizon, handler=handler)
        return self._read(Forecast, (await self._call("GET", "/forecast", query=query)).body)

    async def autoscale(
        self, *, lead: timedelta | None = None, clear: timedelta | None = None, handler: str | None = None
    ) -> Autoscale:
        """How much capacity runs all that is due within `lead` within `clear` (None: the API's defaults)."""
        query = query_of(lead=lead, clear=clear, handler=handler)
        return self._read(Autoscale, (await self._call("GET", "/autoscale", query=query)).body)

    async def _patch(self, job_id: str, body: Mapping[str, Any], *, after_current: bool = False) -> Job:
        answer = await self._call(
            "PATCH",
            f"/jobs/{id_in_path(job_id)}",
            query=query_of(afterCurrent=after_current or None),
            content=json_content(body),
            media_type=MERGE_PATCH,
        )
        return self._read(Job, answer.body)

    async def _make(self, path: str, idempotency_key: str | None) -> Job:
        return self._read(Job, (await self._call("POST", path, idempotency_key=idempotency_key or fresh_key())).body)

    def _documents(self, kind: type[V], path: str, query: Mapping[str, str], cursor: str | None) -> Listing[V]:
        """A list whose pages are {items, nextCursor}."""

        async def fetch(after: str | None) -> Page[V]:
            answer = await self._call("GET", path, query={**query, **query_of(cursor=after)})
            return self._read(Page[kind], answer.body)  # type: ignore[valid-type]

        return Listing(fetch, cursor)

    def _arrays(self, kind: type[V], path: str, query: Mapping[str, str], cursor: str | None) -> Listing[V]:
        """A list whose pages are bare arrays. Of the next page's address only the cursor counts: so the API may stand
        behind a proxy that changes paths, and no answer can send the API key elsewhere."""

        async def fetch(after: str | None) -> Page[V]:
            answer = await self._call("GET", path, query={**query, **query_of(cursor=after)})
            items = self._read(tuple[kind, ...], answer.body)  # type: ignore[valid-type]
            return Page(items=items, next_cursor=answer.next_cursor)

        return Listing(fetch, cursor)

    async def _call(self, method: str, path: str, **parts: Any) -> Answer:
        return await self._transport.call(Request(method=method, path=path, **parts))

    def _read(self, kind: type[V], document: Any) -> V:
        try:
            return read(kind, document)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = "".join(f"/{step}" for step in first["loc"]) or "its answer"
            raise Misdirected(
                f"{self._transport.url} does not answer as ringcron does: {place}: {first['msg']}"
            ) from None
