"""What a request makes due soon, or asks to stop, is told to the workers once its answer is there.

Invariant: the bell rings after the commit, never before: an early worker would look, find nothing, and sleep. An answer
that is refused rings nothing. A hint only (ringcron.bell): nobody waits for it, and a bell too many costs one look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from aiohttp import web

from ringcron.bell import SOON_SECONDS
from ringcron.models import Job, JobState
from ringcron.store.bell import Ringer

RINGER: Final = web.AppKey("ringer", Ringer)
"""Not there where the bell is `poll`."""
_SLOTS: Final = web.RequestKey("slots due soon", set[int])
_CANCELS: Final = web.RequestKey("runs to stop", set[tuple[UUID, int]])
_SOON: Final = timedelta(seconds=SOON_SECONDS)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def note_job(request: web.Request, job: Job) -> None:
    """The request has just changed this job; workers look at once if it is due soon."""
    if job.state is JobState.DUE and job.next_run_at is not None:
        note_due(request, job.slot, job.next_run_at, job.updated_at)


def note_due(request: web.Request, slot: int, next_run_at: datetime, now: datetime) -> None:
    """The same of a job that is known by these. `now` is the database's."""
    if next_run_at < now + _SOON:
        request.setdefault(_SLOTS, set()).add(slot)


def note_cancel(request: web.Request, job_id: UUID, generation: int) -> None:
    """The request has asked the worker of this run to stop it."""
    request.setdefault(_CANCELS, set()).add((job_id, generation))


@web.middleware
async def ring_all(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Ring for what the handler noted."""
    response = await handler(request)
    ringer = request.app.get(RINGER)
    if ringer is not None:
        for slot in request.get(_SLOTS, ()):
            ringer.due_soon(slot)
        for job_id, generation in request.get(_CANCELS, ()):
            ringer.cancel(job_id, generation)
    return response
