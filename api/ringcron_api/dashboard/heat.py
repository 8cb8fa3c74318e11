"""The heat map: a row per worker, a cell per group of its slots, the slots without an owner above all. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from ringcron.models import WorkerReport
from ringcron_api.dashboard.layout import row, table
from ringcron_api.dashboard.markup import Child, Markup, tag
from ringcron_api.dashboard.phrases import clock, counted, number, slots, span
from ringcron_api.dashboard.picture import Picture
from ringcron_api.dashboard.ring_drawing import Strip, group_size, late_words, strip_of
from ringcron_api.shards import Held, SlotLate, arcs_of


def heat_rows(picture: Picture) -> dict[str, Markup]:
    """A row per worker, the ones without an owner first."""
    ring = picture.ring
    group = group_size(ring)
    rows: dict[str, Markup] = {}
    if ring.unowned:
        rows["r-nobody"] = _nobody_row(ring.unowned, {**ring.unowned_late}, group)
    for held in sorted(ring.held, key=lambda held: held.worker.worker_id):
        rows[f"r-{held.worker.worker_id}"] = _held_row(held, group)
    for worker in picture.workers:
        if worker.silent:
            rows[f"r-{worker.worker_id}"] = row(
                tag("th", worker.worker_id, scope="row"),
                tag("td", f"silent since {since(picture, worker)}; it owns nothing", colspan=5, class_="silent"),
                id=f"r-{worker.worker_id}",
            )
    return rows


def since(picture: Picture, worker: WorkerReport) -> str:
    """To the full five seconds, so that the row does not change with the clock's estimate."""
    at = (picture.now - timedelta(seconds=worker.age_seconds)).timestamp()
    return clock(picture.now + timedelta(seconds=round(at) - picture.now.timestamp()))


def _nobody_row(unowned: frozenset[int], late: dict[int, SlotLate], group: int) -> Markup:
    strip = Strip(slots=tuple(sorted(unowned)), group=group, late=late)
    where = slots(arcs_of(unowned))
    return row(
        tag("th", "no owner", scope="row"),
        tag("td", strip_of(strip, f"No owner: {where}", unowned=True), class_="cells"),
        late_words(worst_of(late)),
        tag("td", number(sum(one.due for one in late.values())), class_="num"),
        tag("td", "–", class_="num none"),
        tag("td", f"{len(unowned):,}", class_="num"),
        id="r-nobody",
        class_="nobody",
    )


def _held_row(held: Held, group: int) -> Markup:
    worker = held.worker
    strip = Strip(slots=tuple(sorted(held.slots)), group=group, late=held.late)
    worst = worst_of(held.late)
    oldest = "nothing waits" if worst is None else f"oldest {span(worst.lag_seconds)}, {counted(worst.due, 'job')} due"
    return row(
        tag("th", worker.worker_id, tag("small", " draining") if worker.draining else None, scope="row"),
        tag("td", strip_of(strip, f"{worker.worker_id}: {oldest}"), class_="cells"),
        late_words(worst),
        tag("td", number(held.due), class_="num" if held.due else "num none"),
        tag("td", f"{worker.running} / {worker.capacity}", class_="num"),
        tag("td", f"{len(held.slots):,}", class_="num"),
        id=f"r-{worker.worker_id}",
    )


def worst_of(late: Mapping[int, SlotLate]) -> SlotLate | None:
    found: SlotLate | None = None
    for one in late.values():
        found = one.beside(found)
    return found


def heat_table(rows: Mapping[str, Markup]) -> Markup:
    """The heat map around its rows."""
    head: tuple[Child, ...] = (
        "worker",
        tag("th", "lag of its slots", scope="col", class_="cells"),
        *(tag("th", name, scope="col", class_="num") for name in ("oldest", "due", "running", "slots")),
    )
    return table(head, list(rows.values()), class_="heat", empty="No worker has reported.", id_="heat")
