"""Dead jobs that a person ticked: the boxes, and the page that counts them and asks for that number.

Invariant: as for a group, nothing is done to many but from the page that has counted them; and what is no longer dead
by then is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from aiohttp import web

from ringcron.errors import JobNotFound
from ringcron.models import Job, JobState
from ringcron_api.dashboard.forms import act_form, confirm_field
from ringcron_api.dashboard.job_words import title_of
from ringcron_api.dashboard.keys import PAINTER
from ringcron_api.dashboard.layout import page, panel, row, table
from ringcron_api.dashboard.markup import Markup, join, tag
from ringcron_api.dashboard.phrases import counted, stamp
from ringcron_api.dashboard.session import session_of
from ringcron_api.keys import STORE
from ringcron_api.problems import Problem
from ringcron_api.requests import parse_job_id

MOST_TICKED: Final = 100


def boxes(ids: Sequence[UUID]) -> Markup:
    """A form with a box for each job; it leads to the page that counts what was ticked."""
    return tag(
        "form",
        tag("ul", [_box(job_id) for job_id in ids], class_="mono ids"),
        tag("button", "Redrive or delete those that are ticked …"),
        method="get",
        action="/dashboard/dead/selected",
        class_="ticked",
    )


def _box(job_id: UUID) -> Markup:
    name = f"Choose {job_id}"
    return tag(
        "li",
        tag("input", type="checkbox", name="jobId", value=str(job_id), aria_label=name),
        " ",
        tag("a", str(job_id), href=f"/dashboard/jobs/{job_id}"),
    )


async def show_selected(request: web.Request) -> web.Response:
    """GET /dashboard/dead/selected?jobId=…&jobId=…"""
    ids = ids_in(request.query.getall("jobId", []))
    store = request.app[STORE]
    picture = await request.app[PAINTER].picture()
    dead: list[Job] = []
    for job_id in ids:
        try:
            job = await store.get_job(job_id)
        except JobNotFound:
            continue
        if job.state is JobState.DEAD:
            dead.append(job)
    session = session_of(request)
    gone = len(ids) - len(dead)
    fields = join(
        tag("input", type="hidden", name="jobs", value=" ".join(str(job.id) for job in dead)),
        confirm_field(len(dead)),
    )
    return page(
        request,
        "Dead jobs",
        tag("p", tag("a", "‹ All dead jobs", href="/dashboard/dead")),
        tag("h1", f"{counted(len(dead), 'dead job')} chosen"),
        tag("p", f"{counted(gone, 'other')} chosen before: not dead any more, left alone.", class_="note")
        if gone
        else None,
        tag(
            "div",
            panel(
                "Redrive them",
                act_form(
                    session,
                    "/dashboard/dead/selected/redrive",
                    "Redrive",
                    fields,
                    explained="The same occurrences again, now, with all their attempts.",
                ),
            ),
            panel(
                "Delete them",
                act_form(
                    session,
                    "/dashboard/dead/selected/delete",
                    "Delete",
                    fields,
                    explained="They are cancelled for good: nothing of them runs again.",
                    danger=True,
                ),
            ),
            class_="grid",
        )
        if dead
        else None,
        panel(
            "The jobs",
            table(
                ("job", "handler", "why", "since"), [_job_row(job, picture.now) for job in dead], empty="None is dead."
            ),
        ),
        view="dead",
        picture=picture,
    )


def _job_row(job: Job, now: datetime) -> Markup:
    return row(
        tag("th", tag("a", title_of(job), href=f"/dashboard/jobs/{job.id}"), scope="row"),
        job.definition.handler,
        tag("td", (job.dead_reason or "no reason was kept")[:300], class_="message"),
        tag("td", stamp(job.updated_at, now)),
    )


def ids_in(texts: Sequence[str]) -> list[UUID]:
    """The ids, each once. Raises Problem."""
    ids = list(dict.fromkeys(parse_job_id(text) for text in texts))
    if not ids:
        raise Problem("bad-request", "no job is ticked: go back and tick those that are meant")
    if len(ids) > MOST_TICKED:
        raise Problem("bad-request", f"at most {MOST_TICKED} jobs can be chosen one by one")
    return ids
