"""GET /jobs/{jobId}/runs, /skips and /audit: bare arrays, newest first, the next page in the header Link."""

from __future__ import annotations

from aiohttp import web

from ringcron_api.answers import audit_answer, run_answer, skip_answer
from ringcron_api.cursors import Cursors, instants_from, instants_key, number_from, number_key
from ringcron_api.keys import STORE
from ringcron_api.requests import job_id_of, json_answer, next_page, query_of
from ringcron_api.schemas import Page


async def list_runs(request: web.Request) -> web.Response:
    job_id, query = job_id_of(request), query_of(request, Page)
    cursors = Cursors("runs", job_id)
    before = None if query.cursor is None else number_from(cursors.key(query.cursor))
    found = await request.app[STORE].list_runs(job_id, before_generation=before, limit=query.limit + 1)
    runs = found[: query.limit]
    cursor = cursors.text(number_key(runs[-1].lease_generation)) if len(found) > len(runs) else None
    return json_answer([run_answer(run) for run in runs], headers=next_page(request, cursor))


async def list_skips(request: web.Request) -> web.Response:
    job_id, query = job_id_of(request), query_of(request, Page)
    cursors = Cursors("skips", job_id)
    before = None if query.cursor is None else instants_from(cursors.key(query.cursor))
    found = await request.app[STORE].list_skips(job_id, before=before, limit=query.limit + 1)
    records = found[: query.limit]
    more = len(found) > len(records)
    cursor = cursors.text(instants_key(records[-1].skip.first, records[-1].decided_at)) if more else None
    return json_answer([skip_answer(record.skip) for record in records], headers=next_page(request, cursor))


async def list_audit(request: web.Request) -> web.Response:
    job_id, query = job_id_of(request), query_of(request, Page)
    cursors = Cursors("audit", job_id)
    before = None if query.cursor is None else number_from(cursors.key(query.cursor))
    found = await request.app[STORE].list_audit(job_id, before_id=before, limit=query.limit + 1)
    entries = found[: query.limit]
    cursor = cursors.text(number_key(entries[-1].id)) if len(found) > len(entries) else None
    return json_answer([audit_answer(entry) for entry in entries], headers=next_page(request, cursor))
