"""POST /jobs, GET /jobs, GET and DELETE /jobs/{jobId}."""

from __future__ import annotations

from aiohttp import web

from ringcron import metrics
from ringcron.changes import cancel_after_current
from ringcron.errors import JobAlreadyClaimed
from ringcron.store.api import Cancelled
from ringcron.store.audit import Action
from ringcron.store.creating import Created
from ringcron.store.listing import JobFilter, Place
from ringcron_api.answers import created_answer, job_answer
from ringcron_api.bell import note_job
from ringcron_api.callers import act_of, trace_of
from ringcron_api.creation import next_runs, read_creation
from ringcron_api.creation_schemas import CreateJobQuery
from ringcron_api.cursors import Cursors, place_from, place_key
from ringcron_api.keys import STORE
from ringcron_api.requests import job_id_of, json_answer, json_body, query_of, store_of
from ringcron_api.schemas import AfterCurrent, ListJobs, NoQuery


async def create_job(request: web.Request) -> web.Response:
    query = query_of(request, CreateJobQuery)
    document, held_back = await json_body(request)
    store = store_of(request)
    now = await store.now()
    creation = read_creation(document, held_back, now, trace_of(request))
    new = creation.new
    if query.dry_run:
        _, job = await store.rehearse(lambda within: within.insert_job(new, creation.on_conflict))
        return json_answer(created_answer(job, next_runs(job, now)))
    what, job = await store.insert_job(new, creation.on_conflict)
    note_job(request, job)
    answer = created_answer(job, next_runs(job, now))
    status = 201 if what is Created.CREATED else 200
    return json_answer(answer, status=status, headers={"Location": f"/jobs/{job.id}"})


async def list_jobs(request: web.Request) -> web.Response:
    query = query_of(request, ListJobs)
    wanted = JobFilter(
        state=query.state,
        tag=query.tag,
        handler=query.handler,
        name=query.name,
        due_after=query.due_after,
        due_before=query.due_before,
    )
    by_time = query.order == "nextRunAt"
    cursors = Cursors("jobs", by_time, wanted)
    after = None if query.cursor is None else place_from(cursors.key(query.cursor), by_time=by_time)
    with_payload = query.include == "payload"
    found = await request.app[STORE].list_jobs(
        wanted, after=after, by_time=by_time, limit=query.limit + 1, with_payload=with_payload
    )
    jobs = found[: query.limit]
    cursor = None
    if len(found) > len(jobs):
        last = Place(job_id=jobs[-1].id, next_run_at=jobs[-1].next_run_at if by_time else None)
        cursor = cursors.text(place_key(last))
    items = [job_answer(job, with_payload=with_payload) for job in jobs]
    return json_answer({"items": items, "nextCursor": cursor})


async def get_job(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    return json_answer(job_answer(await request.app[STORE].get_job(job_id_of(request))))


async def cancel_job(request: web.Request) -> web.Response:
    job_id, query = job_id_of(request), query_of(request, AfterCurrent)
    act = act_of(request, Action.CANCEL)
    store = store_of(request)
    if query.after_current:
        job, change = await store.change_job(job_id, cancel_after_current, act)
        return json_answer(job_answer(job), status=202) if change.waits else web.Response(status=204)
    try:
        result = await store.cancel_job(job_id, act)
    except JobAlreadyClaimed:
        metrics.CANCELS["conflict"].inc()
        raise
    if result is Cancelled.CANCELLED:
        metrics.CANCELS["cancelled"].inc()
    return web.Response(status=204)
