"""What the forms for dead jobs do: redrive or delete as many as the person saw, and no more; of a group, or chosen."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web

from ringcron import changes
from ringcron.errors import JobNotFound, WrongState
from ringcron.models import Job, JobState
from ringcron.store.acting import DeadFilter
from ringcron.store.audit import Act, Action
from ringcron_api.bell import note_due, note_job
from ringcron_api.callers import act_of
from ringcron_api.dashboard.dead_page import MOST_AT_ONCE
from ringcron_api.dashboard.forms import field_in, reason_in, told_count
from ringcron_api.dashboard.job_actions import Decide, told
from ringcron_api.dashboard.layout import see_other
from ringcron_api.dashboard.selection_page import MOST_TICKED, ids_in
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
    """POST /dashboard/dead/delete: each by itself, and with an entry in the audit each."""
    reason, handler, fingerprint, count = await _asked(request)
    store = request.app[STORE]
    act = act_of(request, Action.CANCEL, {**told(reason), "group": fingerprint})
    deleted, after, left = 0, None, count
    while left > 0:
        ids = await store.dead_ids(handler=handler, fingerprint=fingerprint, after=after, limit=min(left, _BATCH))
        if not ids:
            break
        deleted += await _each(request, ids, _delete, act)
        after, left = ids[-1], left - len(ids)
    return see_other(request, f"/dashboard/dead?{urlencode({'said': 'deleted', 'count': deleted})}")


async def redrive_selected(request: web.Request) -> web.Response:
    """POST /dashboard/dead/selected/redrive."""
    return await _act_on_selected(request, changes.redrive, Action.REDRIVE, "redriven")


async def delete_selected(request: web.Request) -> web.Response:
    """POST /dashboard/dead/selected/delete."""
    return await _act_on_selected(request, _delete, Action.CANCEL, "deleted")


async def _act_on_selected(request: web.Request, decide: Decide, action: Action, said: str) -> web.Response:
    reason = await reason_in(request)
    ids = ids_in((await field_in(request, "jobs")).split())
    if await told_count(request, MOST_TICKED) != len(ids):
        raise Problem("bad-request", "the form does not name as many jobs as it counts: nothing was done")
    done = await _each(request, ids, decide, act_of(request, action, told(reason)))
    return see_other(request, f"/dashboard/dead?{urlencode({'said': said, 'count': done})}")


async def _each(request: web.Request, ids: Sequence[UUID], decide: Decide, act: Act) -> int:
    """Do it to each job that is still dead; to how many. Each has an entry of its own in the audit."""
    store = request.app[STORE]
    turns = asyncio.Semaphore(TOGETHER)

    async def one(job_id: UUID) -> bool:
        async with turns:
            try:
                job, _ = await store.change_job(job_id, decide, act)
            except (WrongState, JobNotFound):  # somebody redrove or deleted it meanwhile, or it has left
                return False
        note_job(request, job)
        return True

    return sum(await asyncio.gather(*(one(job_id) for job_id in ids)))


def _delete(job: Job, now: datetime) -> changes.Change:
    """Cancel a job that is dead. Raises WrongState."""
    if job.state is not JobState.DEAD:
        raise WrongState(f"it is {job.state}, not dead any more", state=job.state)
    return changes.cancel_after_current(job, now)


async def _asked(request: web.Request) -> tuple[str, str, str, int]:
    """Reason, handler, fingerprint and the number that was seen and typed. Raises Problem."""
    reason = await reason_in(request)
    handler, fingerprint = await field_in(request, "handler"), await field_in(request, "group")
    if not handler or not fingerprint:
        raise Problem("bad-request", "the form does not say which jobs")
    return reason, handler, fingerprint, await told_count(request, MOST_AT_ONCE)


async def _per_second(request: web.Request) -> float | None:
    text = await field_in(request, "perSecond")
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not 0.1 <= value <= 1000:
        raise Problem("bad-request", "jobs a second: from 0.1 to 1000, or nothing for all now")
    return value
