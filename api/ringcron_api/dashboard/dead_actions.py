"""What the forms of a group of dead jobs do: redrive or delete as many as the person saw, and no more."""

from __future__ import annotations

import asyncio
import math
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web

from ringcron.errors import JobAlreadyClaimed, JobNotFound
from ringcron.store.acting import DeadFilter
from ringcron.store.api import Cancelled
from ringcron.store.audit import Action
from ringcron_api.bell import note_due
from ringcron_api.callers import act_of
from ringcron_api.dashboard.dead_page import MOST_AT_ONCE
from ringcron_api.dashboard.forms import field_in, reason_in
from ringcron_api.dashboard.job_actions import told
from ringcron_api.dashboard.layout import see_other
from ringcron_api.keys import STORE
from ringcron_api.problems import Problem

TOGETHER: Final = 4
"""Cancels under way at a time: half of the connections that an API process has."""
_BATCH: Final = 500


async def redrive_group(request: web.Request) -> web.Response:
    """POST /dashboard/dead/redrive."""
    reason, handler, fingerprint, count = await _asked(request)
    per_second = await _per_second(request)
    store = request.app[STORE]
    now = await store.now()
    detail = {**told(reason), "handler": handler, "group": fingerprint, "perSecond": per_second}
    redriven = await store.redrive_jobs(
        DeadFilter(handler=handler, tag=None, limit=count, fingerprint=fingerprint),
        per_second=per_second,
        act=act_of(request, Action.REDRIVE, detail),
    )
    for each in redriven:
        note_due(request, each.slot, each.next_run_at, now)
    return see_other(request, f"/dashboard/dead?{urlencode({'said': 'redriven', 'count': len(redriven)})}")


async def delete_group(request: web.Request) -> web.Response:
    """POST /dashboard/dead/delete: each by the statement that decides a cancel, and with an entry in the audit each."""
    reason, handler, fingerprint, count = await _asked(request)
    store = request.app[STORE]
    act = act_of(request, Action.CANCEL, {**told(reason), "group": fingerprint})
    turns = asyncio.Semaphore(TOGETHER)

    async def cancel(job_id: UUID) -> bool:
        async with turns:
            try:
                return await store.cancel_job(job_id, act) is Cancelled.CANCELLED
            except (JobAlreadyClaimed, JobNotFound):  # somebody redrove it meanwhile, or it has left
                return False

    deleted, after, left = 0, None, count
    while left > 0:
        ids = await store.dead_ids(handler=handler, fingerprint=fingerprint, after=after, limit=min(left, _BATCH))
        if not ids:
            break
        deleted += sum(await asyncio.gather(*(cancel(job_id) for job_id in ids)))
        after, left = ids[-1], left - len(ids)
    return see_other(request, f"/dashboard/dead?{urlencode({'said': 'deleted', 'count': deleted})}")


async def _asked(request: web.Request) -> tuple[str, str, str, int]:
    """Reason, handler, fingerprint and the number that was seen and typed. Raises Problem."""
    reason = await reason_in(request)
    handler, fingerprint = await field_in(request, "handler"), await field_in(request, "group")
    typed, seen = await field_in(request, "confirm"), await field_in(request, "counted")
    if not handler or not fingerprint:
        raise Problem("bad-request", "the form does not say which jobs")
    if not seen.isdecimal() or typed.replace(",", "") != seen or not 0 < int(seen) <= MOST_AT_ONCE:
        raise Problem("bad-request", f"the number typed is not the number of jobs: nothing was done. Type {seen[:6]}")
    return reason, handler, fingerprint, int(seen)


async def _per_second(request: web.Request) -> float | None:
    text = await field_in(request, "perSecond")
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not 0.1 <= value <= 1000:
        raise Problem("bad-request", "jobs a second: from 0.1 to 1000, or nothing for all now")
    return value
