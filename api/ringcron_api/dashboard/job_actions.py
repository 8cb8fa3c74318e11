"""What the forms of a job's page do: the same calls of the store as the JSON API makes, with a reason in the audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from aiohttp import web

from ringcron import changes, metrics
from ringcron.errors import JobAlreadyClaimed
from ringcron.models import Job
from ringcron.store.api import Cancelled
from ringcron.store.audit import Action
from ringcron_api.acting import run_id_of
from ringcron_api.bell import note_cancel, note_job
from ringcron_api.callers import act_of, actor_of
from ringcron_api.dashboard.forms import field_in, reason_in
from ringcron_api.dashboard.layout import see_other
from ringcron_api.keys import STORE
from ringcron_api.problems import Problem
from ringcron_api.requests import job_id_of

Decide = Callable[[Job, datetime], changes.Change]
_CHANGES: Final[Mapping[str, tuple[Action, Decide]]] = {
    "trigger": (Action.TRIGGER, changes.trigger),
    "redrive": (Action.REDRIVE, changes.redrive),
    "resume": (Action.RESUME, changes.resume),
    "cancel-later": (Action.CANCEL, changes.cancel_after_current),
}


async def act_on_job(request: web.Request) -> web.Response:
    """POST /dashboard/jobs/{jobId}/{act}."""
    job_id, what = job_id_of(request), request.match_info["act"]
    reason = await reason_in(request)
    detail = told(reason)
    store = request.app[STORE]
    if what == "cancel":
        try:
            result = await store.cancel_job(job_id, act_of(request, Action.CANCEL, detail))
        except JobAlreadyClaimed:
            metrics.CANCELS["conflict"].inc()
            raise
        if result is Cancelled.CANCELLED:
            metrics.CANCELS["cancelled"].inc()
        return see_other(request, f"/dashboard/jobs/{job_id}?said={what}")
    if what == "pause":
        action, decide = Action.PAUSE, _pause(reason, actor_of(request))
    elif what in _CHANGES:
        action, decide = _CHANGES[what]
    else:
        raise Problem("not-found", "there is no such act")
    job, _ = await store.change_job(job_id, decide, act_of(request, action, detail))
    note_job(request, job)
    return see_other(request, f"/dashboard/jobs/{job_id}?said={what}")


async def act_on_run(request: web.Request) -> web.Response:
    """POST /dashboard/runs/{runId}/cancel."""
    job_id, generation = run_id_of(request)
    detail = told(await reason_in(request))
    await request.app[STORE].request_cancel(job_id, generation, act_of(request, Action.CANCEL_RUN, detail))
    note_cancel(request, job_id, generation)
    return see_other(request, f"/dashboard/jobs/{job_id}?said=cancel-run")


async def drain_worker(request: web.Request) -> web.Response:
    """POST /dashboard/workers/drain."""
    reason, worker_id = await reason_in(request), await field_in(request, "worker")
    act = act_of(request, Action.DRAIN, {**told(reason), "worker": worker_id})
    await request.app[STORE].ask_drain(worker_id, actor_of(request), act)
    return see_other(request, "/dashboard/workers?said=drain")


def told(reason: str) -> dict[str, Any]:
    """What the audit log keeps beside who and what."""
    return {"reason": reason, "via": "dashboard"}


def _pause(reason: str, by: str) -> Decide:
    return partial(changes.pause, reason=reason, by=by)
