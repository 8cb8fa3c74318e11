"""Every page and form of the dashboard: a table like that of the API's calls, and no part of the OpenAPI document."""

from __future__ import annotations

from typing import Final

from aiohttp import hdrs, web

from ringcron.api_keys import Scope
from ringcron_api.dashboard.assets import show_asset
from ringcron_api.dashboard.dead_actions import delete_group, delete_selected, redrive_group, redrive_selected
from ringcron_api.dashboard.dead_page import show_dead, show_group
from ringcron_api.dashboard.job_actions import act_on_job, act_on_run, drain_worker
from ringcron_api.dashboard.job_page import show_job
from ringcron_api.dashboard.jobs_page import show_jobs
from ringcron_api.dashboard.keys import STREAM
from ringcron_api.dashboard.login_page import log_in, log_out, show_login
from ringcron_api.dashboard.parts import PARTS
from ringcron_api.dashboard.pool_pages import show_alerts, show_overview, show_shards, show_spikes, show_workers
from ringcron_api.dashboard.selection_page import show_selected
from ringcron_api.dashboard.session import PATH
from ringcron_api.dashboard.stream import serve
from ringcron_api.keys import ACCESS, CLOCK
from ringcron_api.operations import Handler, Operation
from ringcron_api.problems import Problem


async def show_root(request: web.Request) -> web.StreamResponse:
    """GET /: a browser is sent to the dashboard; for programs there is nothing here."""
    if "text/html" not in request.headers.get(hdrs.ACCEPT, "").lower():
        raise web.HTTPNotFound
    return web.Response(status=303, headers={hdrs.LOCATION: PATH, hdrs.VARY: hdrs.ACCEPT})


async def show_events(request: web.Request) -> web.StreamResponse:
    """GET /dashboard/events?view=…"""
    view = request.query.get("view", "")
    if view not in PARTS:
        raise Problem("not-found", "there is no such view")
    access = request.app[ACCESS]

    async def still_lives() -> bool:
        try:
            await access.session(request)
        except Problem:
            return False
        return True

    return await serve(request, request.app[STREAM], view, request.app[CLOCK], still_lives)


def _page(
    path: str, handler: Handler, *, method: str = "GET", scope: Scope | None = None, open: bool = False
) -> Operation:
    return Operation(
        method=method,
        path=path,
        handler=handler,
        name=handler.__name__,
        group="Dashboard",
        summary="",
        query=None,
        answers={},
        page=True,
        scope=scope,
        open=open,
    )


PAGES: Final = (
    _page("/", show_root, open=True),
    _page("/dashboard", show_overview),
    _page("/dashboard/shards", show_shards),
    _page("/dashboard/spikes", show_spikes),
    _page("/dashboard/jobs", show_jobs),
    _page("/dashboard/jobs/{jobId}", show_job),
    _page("/dashboard/dead", show_dead),
    _page("/dashboard/dead/group", show_group),
    _page("/dashboard/dead/selected", show_selected),
    _page("/dashboard/alerts", show_alerts),
    _page("/dashboard/workers", show_workers),
    _page("/dashboard/events", show_events),
    _page("/dashboard/jobs/{jobId}/{act}", act_on_job, method="POST"),
    _page("/dashboard/runs/{runId}/cancel", act_on_run, method="POST"),
    _page("/dashboard/dead/redrive", redrive_group, method="POST", scope=Scope.ADMIN),
    _page("/dashboard/dead/delete", delete_group, method="POST", scope=Scope.ADMIN),
    _page("/dashboard/dead/selected/redrive", redrive_selected, method="POST"),
    _page("/dashboard/dead/selected/delete", delete_selected, method="POST"),
    _page("/dashboard/workers/drain", drain_worker, method="POST", scope=Scope.ADMIN),
    _page("/dashboard/logout", log_out, method="POST", scope=Scope.READ),
    _page("/dashboard/login", show_login, open=True),
    _page("/dashboard/login", log_in, method="POST", open=True),
    _page("/dashboard/static/{name}", show_asset, open=True),
)
