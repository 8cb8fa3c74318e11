"""Dead jobs in groups of one fault, and what is to become of a whole group.

Invariant: nothing is done to many at once but from a page that has counted them and asked for that number, so that what
is done is what was seen. What became dead meanwhile is left alone: only as many as were counted are touched.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from ringcron.api_keys import Scope
from ringcron.store.looking import DEAD_GROUPED, DeadGroup
from ringcron_api.dashboard.forms import act_form, confirm_field
from ringcron_api.dashboard.keys import PAINTER
from ringcron_api.dashboard.layout import page, panel, row, table
from ringcron_api.dashboard.markup import Child, Markup, join, tag
from ringcron_api.dashboard.phrases import counted, number, stamp
from ringcron_api.dashboard.selection_page import MOST_TICKED, boxes
from ringcron_api.dashboard.session import session_of
from ringcron_api.keys import STORE
from ringcron_api.problems import Problem

MOST_AT_ONCE: Final = 10_000


async def show_dead(request: web.Request) -> web.Response:
    """GET /dashboard/dead: the groups."""
    picture = await request.app[PAINTER].picture()
    groups = await request.app[STORE].dead_groups()
    grouped = sum(group.jobs for group in groups)
    head: tuple[Child, ...] = (
        tag("th", "jobs", scope="col", class_="num"),
        "handler",
        "why, of the newest",
        "first",
        "last",
        "all of them",
    )
    note = "Jobs whose reason differs only in numbers, ids and quoted words are one group."
    if grouped >= DEAD_GROUPED:
        note += f" There are more: the newest {number(DEAD_GROUPED)} are grouped."
    return page(
        request,
        "Dead jobs",
        _done(request),
        tag("h1", "Dead jobs"),
        panel(
            counted(grouped, "job", capped=grouped >= DEAD_GROUPED),
            table(head, [_group_row(group, picture.now) for group in groups], empty="No job is dead.", class_="dead"),
            note=note,
        ),
        view="dead",
        picture=picture,
    )


def _group_row(group: DeadGroup, now: datetime) -> Markup:
    query = urlencode({"handler": group.handler, "group": group.fingerprint})
    return row(
        tag("td", tag("a", number(group.jobs), href=f"/dashboard/dead/group?{query}"), class_="num"),
        group.handler,
        tag("td", tag("a", _reason(group), href=f"/dashboard/dead/group?{query}", class_="message")),
        tag("td", stamp(group.first_at, now)),
        tag("td", stamp(group.last_at, now)),
        tag(
            "td",
            tag("a", "Redrive …", href=f"/dashboard/dead/group?{query}#redrive"),
            " · ",
            tag("a", "Delete …", href=f"/dashboard/dead/group?{query}#delete"),
        ),
    )


def _reason(group: DeadGroup) -> str:
    return (group.example or "no reason was kept")[:600]


def _done(request: web.Request) -> Markup | None:
    """What was done to a group just before."""
    what, count = request.query.get("said", ""), request.query.get("count", "")
    if what not in ("redriven", "deleted") or not count.isdecimal() or len(count) > 6:
        return None
    return tag("p", f"{counted(int(count), 'job')} {what}.", class_="said", role="status")


async def show_group(request: web.Request) -> web.Response:
    """GET /dashboard/dead/group: one group, its jobs, and the forms that act on all of them."""
    handler, fingerprint = request.query.get("handler", ""), request.query.get("group", "")
    store = request.app[STORE]
    picture = await request.app[PAINTER].picture()
    groups = await store.dead_groups(handler or None)
    group = next((one for one in groups if one.fingerprint == fingerprint), None)
    if group is None:
        raise Problem("not-found", "no dead job is in this group any more")
    ids = await store.dead_ids(handler=handler or None, fingerprint=fingerprint, after=None, limit=MOST_TICKED)
    session = session_of(request)
    more = group.jobs - len(ids)
    return page(
        request,
        "Dead jobs",
        tag("p", tag("a", "‹ All dead jobs", href="/dashboard/dead")),
        tag("h1", f"{counted(group.jobs, 'dead job')} of {group.handler}"),
        panel("Why, of the newest", tag("pre", _reason(group), tabindex="0")),
        tag(
            "div",
            panel(
                "Redrive all",
                act_form(
                    session,
                    "/dashboard/dead/redrive",
                    "Redrive",
                    _which(group),
                    confirm_field(group.jobs),
                    _pace(),
                    needs=Scope.ADMIN,
                    explained="The same occurrences again, with all their attempts; paced, so that a target that has "
                    "just come back is not run over.",
                ),
                id_="redrive",
            ),
            panel(
                "Delete all",
                act_form(
                    session,
                    "/dashboard/dead/delete",
                    "Delete",
                    _which(group),
                    confirm_field(group.jobs),
                    needs=Scope.ADMIN,
                    explained="They are cancelled for good: nothing of them runs again.",
                    danger=True,
                ),
                id_="delete",
            ),
            class_="grid",
        ),
        panel(
            "The jobs",
            boxes(ids),
            tag("p", f"and {counted(more, 'more job')}", class_="note") if more > 0 else None,
        ),
        view="dead",
        picture=picture,
    )


def _which(group: DeadGroup) -> Markup:
    return join(
        tag("input", type="hidden", name="handler", value=group.handler),
        tag("input", type="hidden", name="group", value=group.fingerprint),
    )


def _pace() -> Markup:
    return tag(
        "label",
        "Jobs a second",
        tag("input", name="perSecond", type="number", min="0.1", max="1000", step="any", placeholder="all now", size=8),
    )
