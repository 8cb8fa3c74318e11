"""The pages of the pool: overview, shards, spikes, alerts, workers."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from ringcron.api_keys import Scope
from ringcron.models import WorkerReport
from ringcron_api.dashboard.forms import act_form, said
from ringcron_api.dashboard.heat import heat_table
from ringcron_api.dashboard.keys import PAINTER
from ringcron_api.dashboard.layout import page, panel, table
from ringcron_api.dashboard.markup import Child, Markup, tag
from ringcron_api.dashboard.parts import Parts, alerts_parts, overview_parts, shards_parts, spikes_parts, workers_parts
from ringcron_api.dashboard.ring_drawing import legend
from ringcron_api.dashboard.session import session_of

_WORKER_HEAD: tuple[Child, ...] = (
    "worker",
    "state",
    tag("th", "running", scope="col", class_="num"),
    tag("th", "slots", scope="col", class_="num"),
    tag("th", "oldest", scope="col", class_="num"),
    tag("th", "due", scope="col", class_="num"),
    tag("th", "leases", scope="col", class_="num"),
    tag("th", "epoch", scope="col", class_="num"),
    "version",
    "handlers",
)


async def show_overview(request: web.Request) -> web.Response:
    picture = await request.app[PAINTER].picture()
    parts = overview_parts(picture)
    return page(
        request,
        "Overview",
        said(request),
        tag("div", _one(parts, "verdict"), id="verdict"),
        tag("div", _one(parts, "tiles"), id="tiles"),
        tag(
            "div",
            panel("Lag by worker", legend(), heat_table(_rows(parts, "heat")), class_="wide"),
            panel(
                tag("a", "Spikes", href="/dashboard/spikes"),
                tag("div", _one(parts, "sentence"), id="sentence"),
                _pace_legend(),
                tag("div", _one(parts, "pace"), id="pace"),
            ),
            panel(tag("a", "Epochs", href="/dashboard/shards#epochs"), _one(parts, "epochs"), id_="epochs"),
            class_="grid",
        ),
        view="overview",
        picture=picture,
    )


async def show_shards(request: web.Request) -> web.Response:
    picture = await request.app[PAINTER].picture()
    parts = shards_parts(picture)
    note = (
        "A row is a worker, a cell a group of the slots that it owns. Point at a cell for its slots and their lag. "
        "Lag: how long the oldest due job has waited."
    )
    return page(
        request,
        "Shards",
        tag("h1", "Shards"),
        panel("Lag by worker", legend(), heat_table(_rows(parts, "heat")), note=note),
        tag(
            "div",
            panel(
                "Ring",
                _one(parts, "ring"),
                note="Outside the slices of the workers, inside the worst lag; hatched arcs are in handover.",
                id_="ring",
            ),
            panel("Slots that lag", _one(parts, "slots"), id_="slots"),
            class_="grid halves",
        ),
        panel("Epochs", _one(parts, "epochs"), note="What the coordinator published, and why.", id_="epochs"),
        view="shards",
        picture=picture,
    )


async def show_spikes(request: web.Request) -> web.Response:
    picture = await request.app[PAINTER].picture()
    parts = spikes_parts(picture)
    ahead = (
        "Jobs, and the ticks that follow from their schedules, by the second that they become due in; the busiest of "
        "five drawn. What was created within the last 15 s may be missing."
    )
    wanted = (
        "Capacity: runs at the same time. Wanted: what GET /autoscale gives, enough for what waits and for what "
        "becomes due within 3 min, each spike run within 1 min."
    )
    return page(
        request,
        "Spikes",
        tag("h1", "Spikes"),
        tag("div", _one(parts, "sentence"), id="sentence"),
        panel("The last ten minutes", _pace_legend(), tag("div", _one(parts, "pace"), id="pace")),
        tag("div", _one(parts, "now"), id="now"),
        tag("p", wanted, class_="note"),
        panel("The next hour", tag("div", _one(parts, "ahead"), id="ahead"), note=ahead),
        panel("The ten busiest seconds", _one(parts, "busiest"), id_="busiest", class_="narrow"),
        view="spikes",
        picture=picture,
    )


async def show_alerts(request: web.Request) -> web.Response:
    picture = await request.app[PAINTER].picture()
    note = (
        "Jobs that are late by more than their alertAfterLate, or without a success for longer than their "
        "alertIfNoSuccessFor. The leading coordinator looks, a moment after it happens."
    )
    return page(
        request,
        "Alerts",
        tag("h1", "Alerts"),
        panel("Breached now", _one(alerts_parts(picture), "alerts"), note=note, id_="alerts"),
        view="alerts",
        picture=picture,
    )


async def show_workers(request: web.Request) -> web.Response:
    picture = await request.app[PAINTER].picture()
    parts = workers_parts(picture)
    note = "What the workers say of themselves, and what the database says of their leases."
    drainable = [worker for worker in picture.alive if not worker.draining and worker.drain_asked_by is None]
    return page(
        request,
        "Workers",
        said(request),
        tag("h1", "Workers"),
        panel(
            "The pool",
            table(_WORKER_HEAD, list(_rows(parts, "workers").values()), empty="No worker has reported.", id_="workers"),
            note=note,
        ),
        panel("Drain", _drain(request, drainable), class_="narrow"),
        view="workers",
        picture=picture,
    )


def _drain(request: web.Request, workers: list[WorkerReport]) -> Markup:
    session = session_of(request)
    if not workers:
        return tag("p", "No worker is running that is not draining already.", class_="none")
    choice = tag(
        "label",
        "Worker",
        tag(
            "select",
            [tag("option", worker.worker_id, value=worker.worker_id) for worker in workers],
            name="worker",
        ),
    )
    return act_form(
        session,
        "/dashboard/workers/drain",
        "Drain",
        choice,
        needs=Scope.ADMIN,
        explained="It claims nothing more, gives its slots up at once, lets its runs finish, and ends; whoever "
        "supervises it starts it again.",
    )


def _pace_legend() -> Markup:
    return tag(
        "ul",
        tag("li", tag("i", class_="swatch due"), "due, waiting"),
        tag("li", tag("i", class_="swatch started"), "started a second"),
        class_="legend",
    )


def _one(parts: Parts, name: str) -> Markup:
    part = parts[name]
    assert isinstance(part, Markup)
    return part


def _rows(parts: Parts, name: str) -> Mapping[str, Markup]:
    part = parts[name]
    assert isinstance(part, dict)
    return part
