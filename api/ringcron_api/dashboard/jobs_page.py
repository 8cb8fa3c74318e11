"""The list of jobs: filters, search, keyset pages."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web

from ringcron.models import Job, JobState
from ringcron.store.listing import JobFilter, Place
from ringcron_api.cursors import Cursors, place_from, place_key
from ringcron_api.dashboard.job_words import attempt_words, schedule_words, state_pill, title_of
from ringcron_api.dashboard.keys import PAINTER
from ringcron_api.dashboard.layout import page, panel, row, see_other, table
from ringcron_api.dashboard.markup import Child, Markup, tag
from ringcron_api.dashboard.phrases import stamp
from ringcron_api.keys import STORE
from ringcron_api.problems import Problem

PAGE_SIZE: Final = 50
_ID: Final = re.compile(
    r"([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})(\.\d+)?", re.ASCII
)
_FILTERS: Final = ("state", "handler", "tag", "name", "order")


async def show_jobs(request: web.Request) -> web.Response:
    given = {name: request.query.get(name, "").strip() for name in (*_FILTERS, "q", "cursor")}
    if any("\0" in text for text in given.values()):
        raise Problem("bad-request", "a filter holds the character U+0000, which nothing stored can have")
    searched = given["q"]
    if searched:
        found = await _find(request, searched)
        if found is not None:
            return see_other(request, f"/dashboard/jobs/{found}")
        given["name"] = searched
    store = request.app[STORE]
    wanted = JobFilter(
        state=_state(given["state"]),
        tag=given["tag"] or None,
        handler=given["handler"] or None,
        name=given["name"] or None,
    )
    by_time = given["order"] == "nextRunAt"
    cursors = Cursors("jobs", by_time, wanted)
    after = place_from(cursors.key(given["cursor"]), by_time=by_time) if given["cursor"] else None
    jobs = await store.list_jobs(wanted, after=after, by_time=by_time, limit=PAGE_SIZE + 1, with_payload=False)
    shown = jobs[:PAGE_SIZE]
    filters = {name: given[name] for name in _FILTERS if given[name]}
    further: Markup | None = None
    if len(jobs) > PAGE_SIZE:
        last = Place(job_id=shown[-1].id, next_run_at=shown[-1].next_run_at if by_time else None)
        query = urlencode({**filters, "cursor": cursors.text(place_key(last))})
        further = tag("a", "Further ›", href=f"/dashboard/jobs?{query}", rel="next", class_="button")
    first = tag("a", "‹ To the first", href=f"/dashboard/jobs?{urlencode(filters)}") if given["cursor"] else None
    picture = await request.app[PAINTER].picture()
    missed = f"No job has the id, the key or the name “{searched}”." if searched else "No job fits these filters."
    return page(
        request,
        "Jobs",
        tag("h1", "Jobs"),
        _filters(given),
        panel(
            "Soonest first" if by_time else "Newest first",
            table(_HEAD, [_row(job, picture.now) for job in shown], empty=missed, class_="jobs"),
            tag("nav", first, further, class_="pages", aria_label="Pages") if first or further else None,
        ),
        view="jobs",
        picture=picture,
    )


async def _find(request: web.Request, text: str) -> UUID | None:
    """The job of an id, of a run's id, or of a key."""
    form = _ID.fullmatch(text)
    return UUID(form[1]) if form is not None else await request.app[STORE].job_id_of_key(text)


def _state(text: str) -> JobState | None:
    try:
        return JobState(text) if text else None
    except ValueError:
        raise Problem("bad-request", f"there is no state {text[:40]!r}") from None


_HEAD: Final[tuple[Child, ...]] = (
    "job",
    "state",
    "schedule",
    "next run",
    "handler",
    tag("th", "attempt", scope="col", class_="num"),
    "tags",
    "changed",
)


def _row(job: Job, now: datetime) -> Markup:
    definition = job.definition
    title = title_of(job)
    tags = [
        tag("a", name, href=f"/dashboard/jobs?{urlencode({'tag': name})}", class_="tag") for name in definition.tags[:5]
    ]
    return row(
        tag(
            "th",
            tag("a", title, href=f"/dashboard/jobs/{job.id}"),
            tag("small", str(job.id)) if title != str(job.id) else None,
            scope="row",
            class_="title",
        ),
        state_pill(job.state.value),
        tag("td", schedule_words(job), class_="mono"),
        stamp(job.next_run_at, now),
        definition.handler,
        tag("td", attempt_words(job, "/") if job.attempt else "–", class_="num"),
        tag("td", tags),
        stamp(job.updated_at, now),
    )


def _filters(given: dict[str, str]) -> Markup:
    states = [tag("option", "any", value="")]
    states += [
        tag("option", state.value, value=state.value, selected=state.value == given["state"]) for state in JobState
    ]
    orders = [
        tag("option", "newest", value="", selected=not given["order"]),
        tag("option", "next run", value="nextRunAt", selected=given["order"] == "nextRunAt"),
    ]
    return tag(
        "form",
        tag("label", "State", tag("select", states, name="state")),
        tag("label", "Handler", tag("input", name="handler", value=given["handler"])),
        tag("label", "Tag", tag("input", name="tag", value=given["tag"])),
        tag("label", "Name", tag("input", name="name", value=given["name"])),
        tag("label", "Order", tag("select", orders, name="order")),
        tag("button", "Filter"),
        tag("a", "Clear", href="/dashboard/jobs") if any(given[name] for name in _FILTERS) else None,
        method="get",
        action="/dashboard/jobs",
        class_="filters",
    )
