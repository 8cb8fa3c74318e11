"""PATCH /jobs/{jobId}, trigger, redrive, explain, and POST /runs/{runId}/cancel."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from aiohttp import web

from ringcron import changes
from ringcron.changes import Change
from ringcron.errors import RunNotFound
from ringcron.explain import Facts, explain
from ringcron.instants import format_instant
from ringcron.models import Job, JobState
from ringcron.store.acting import DeadFilter
from ringcron.store.api import ApiStore
from ringcron.store.audit import Act, Action
from ringcron_api.answers import explanation_answer, job_answer
from ringcron_api.bell import note_cancel, note_due, note_job
from ringcron_api.callers import act_of, actor_of, trace_of
from ringcron_api.patching import decide_patch
from ringcron_api.requests import JSON, MERGE_PATCH, job_id_of, json_answer, json_body, query_of, store_of
from ringcron_api.schemas import AfterCurrent, NoQuery, RedriveJobs

REDRIVE_SECONDS: Final = 30.0
"""How long a redrive of many may take under an Idempotency-Key, that is, in one transaction."""
_RUN_ID: Final = re.compile(r"(?P<job>[0-9a-fA-F-]{36})\.(?P<generation>[1-9]\d{0,18})", re.ASCII)
_LARGEST: Final = 2**63 - 1


async def patch_job(request: web.Request) -> web.Response:
    query = query_of(request, AfterCurrent)
    document, held_back = await json_body(request, (MERGE_PATCH, JSON))

    def decide(job: Job, now: datetime) -> changes.Change:
        by = actor_of(request)
        return decide_patch(document, held_back, job, now, after_current=query.after_current, by=by)

    job, change = await store_of(request).change_job(job_id_of(request), decide, _patch_act(request, document))
    note_job(request, job)
    return json_answer(job_answer(job), status=202 if change.waits else 200)


def _patch_act(request: web.Request, document: Any) -> Act:
    fields = sorted(document) if isinstance(document, dict) else []
    action = Action.PATCH
    if "paused" in fields:
        action = Action.PAUSE if document["paused"] else Action.RESUME
    return act_of(request, action, {"fields": fields})


async def trigger_job(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    trace = trace_of(request)

    def decide(job: Job, now: datetime) -> Change:
        change = changes.trigger(job, now)
        if trace is None:
            return change
        definition = replace(change.job.definition, **trace._asdict())
        return replace(change, job=replace(change.job, definition=definition))

    job, _ = await store_of(request).change_job(job_id_of(request), decide, act_of(request, Action.TRIGGER))
    note_job(request, job)
    return json_answer(job_answer(job), status=202)


async def redrive_job(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    job, _ = await store_of(request).change_job(job_id_of(request), changes.redrive, act_of(request, Action.REDRIVE))
    note_job(request, job)
    return json_answer(job_answer(job), status=202)


async def redrive_jobs(request: web.Request) -> web.Response:
    query = query_of(request, RedriveJobs)
    wanted = DeadFilter(handler=query.handler, tag=query.tag, limit=query.limit)
    detail = query.model_dump(mode="json", by_alias=True, exclude_none=True)
    store = store_of(request)
    now = await store.now()
    redriven = await store.redrive_jobs(
        wanted, per_second=query.per_second, act=act_of(request, Action.REDRIVE, detail)
    )
    for each in redriven:
        note_due(request, each.slot, each.next_run_at, now)
    last_at = max((each.next_run_at for each in redriven), default=None)
    shown = None if last_at is None else format_instant(last_at)
    return json_answer({"count": len(redriven), "lastAt": shown}, status=202)


async def cancel_run(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    job_id, generation = run_id_of(request)
    worker_id = await store_of(request).request_cancel(job_id, generation, act_of(request, Action.CANCEL_RUN))
    note_cancel(request, job_id, generation)
    return json_answer({"runId": f"{job_id}.{generation}", "workerId": worker_id}, status=202)


def run_id_of(request: web.Request) -> tuple[UUID, int]:
    """The job and the generation of the run in the path. Raises RunNotFound where it is no id of a run."""
    text = request.match_info["runId"]
    form = _RUN_ID.fullmatch(text)
    try:
        if form is not None and int(form["generation"]) <= _LARGEST:
            return UUID(form["job"]), int(form["generation"])
    except ValueError:
        pass  # 36 characters that are no UUID
    raise RunNotFound(f"no run has the id {text[:64]}")


async def explain_job(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    store = store_of(request)
    job = await store.get_job(job_id_of(request))
    facts = await facts_of(store, job)
    return json_answer(explanation_answer(job, explain(job, facts), facts.now))


async def facts_of(store: ApiStore, job: Job) -> Facts:
    """What is known beside the job, as far as its state makes it matter."""
    now = await store.read_clock()
    if job.state is JobState.CLAIMED:
        return Facts(now=now, workers=await store.list_workers())
    if job.state is not JobState.DUE or job.next_run_at is None:
        return Facts(now=now)
    workers = await store.list_workers()
    if job.next_run_at <= now:
        lag = await store.lag([job.definition.handler])
        late_slots = [(late.slot, late.due, late.lag_seconds) for late in lag.slots]
        return Facts(now=now, workers=workers, late_slots=late_slots)
    runs = await store.list_runs(job.id, before_generation=None, limit=1) if job.attempt > 0 else []
    return Facts(now=now, workers=workers, error=runs[0].error if runs else None)
