"""The page of one job: why it has not run, what became of it, when it runs next, what a person may do."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

from aiohttp import web

from ringcron.errors import JobNotFound
from ringcron.explain import explain
from ringcron_api.acting import facts_of
from ringcron_api.dashboard.alert_parts import job_alarm
from ringcron_api.dashboard.forms import said
from ringcron_api.dashboard.job_acts import acts
from ringcron_api.dashboard.job_parts import audit, facts, payload, runs_table, skips_table, timeline, upcoming
from ringcron_api.dashboard.job_words import state_pill, title_of
from ringcron_api.dashboard.keys import PAINTER
from ringcron_api.dashboard.layout import page, panel
from ringcron_api.dashboard.markup import tag
from ringcron_api.dashboard.session import session_of
from ringcron_api.keys import STORE
from ringcron_api.requests import job_id_of

RUNS_SHOWN: Final = 60
SKIPS_SHOWN: Final = 20
AUDIT_SHOWN: Final = 20

T = TypeVar("T")


async def show_job(request: web.Request) -> web.Response:
    store = request.app[STORE]
    job = await store.get_job(job_id_of(request))
    known = await facts_of(store, job)
    now = known.now
    runs = await store.list_runs(job.id, before_generation=None, limit=RUNS_SHOWN)
    skips = await _some(store.list_skips(job.id, before=None, limit=SKIPS_SHOWN))
    entries = await _some(store.list_audit(job.id, before_id=None, limit=AUDIT_SHOWN))
    breaches = await store.breaches_of(job.id)
    picture = await request.app[PAINTER].picture()
    session = session_of(request)
    return page(
        request,
        title_of(job),
        said(request),
        tag(
            "div",
            tag("h1", title_of(job), " ", state_pill(job.state.value)),
            tag("p", explain(job, known).sentence, class_="lead", id="explanation"),
            job_alarm(job, breaches),
            class_="head",
        ),
        panel("Occurrences", timeline(runs)),
        panel("Acts", acts(session, job, now), class_="acts"),
        tag(
            "div",
            panel("Next runs", upcoming(job, now)),
            panel("The job", facts(job, now)),
            class_="grid",
        ),
        panel("Runs", runs_table(runs, now, more=len(runs) == RUNS_SHOWN)),
        tag("div", panel("Skips", skips_table(skips)), panel("Audit", audit(entries)), class_="grid"),
        panel("Payload", payload(job)),
        view="jobs",
        picture=picture,
        follow=True,
    )


async def _some(reading: Awaitable[Sequence[T]]) -> Sequence[T]:
    """What is there; nothing where the job has left meanwhile."""
    try:
        return await reading
    except JobNotFound:
        return ()
