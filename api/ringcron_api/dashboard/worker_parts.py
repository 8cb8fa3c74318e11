"""The rows of the workers' table. Pure."""

from __future__ import annotations

from typing import Final

from ringcron.models import WorkerReport
from ringcron.slots import SLOT_COUNT
from ringcron.store.looking import GoneWorker
from ringcron_api.dashboard.heat import since, worst_of
from ringcron_api.dashboard.layout import row
from ringcron_api.dashboard.markup import Markup, tag
from ringcron_api.dashboard.phrases import clock, number, slots, span
from ringcron_api.dashboard.picture import Picture
from ringcron_api.dashboard.ring_drawing import late_words
from ringcron_api.shards import Held, RingView, arcs_of

LEASE_REPORTS: Final = 3
"""A worker reports so many times in the length of a lease."""


def worker_rows(picture: Picture) -> dict[str, Markup]:
    """Everything about each worker, but for its buttons."""
    held = {one.worker.worker_id: one for one in picture.ring.held}
    rows = {worker.worker_id: _worker_row(picture, worker, held.get(worker.worker_id)) for worker in picture.workers}
    for gone in picture.gone:
        rows[gone.worker_id] = row(
            tag("th", gone.worker_id, scope="row"),
            tag("td", "gone", class_="state gone"),
            tag("td", f"last report {clock(gone.seen_at)} UTC; {_left(gone, picture.ring)}", colspan=8, class_="none"),
            id=f"k-{gone.worker_id}",
        )
    return {f"k-{worker_id}": made for worker_id, made in sorted(rows.items())}


def _left(gone: GoneWorker, ring: RingView) -> str:
    """What became of the slots that a gone worker held."""
    held = {slot for arc in gone.arcs for slot in range(arc.lo, arc.hi + 1)}
    if not held:
        return "it held no slots"
    ownerless = held & ring.unowned
    if not ownerless:
        return "others own the slots that it held"
    return f"of what it held, {slots(arcs_of(ownerless))} have no owner"


def _worker_row(picture: Picture, worker: WorkerReport, held: Held | None) -> Markup:
    claims = picture.snapshot.claims.get(worker.worker_id)
    lapse = "–"
    if claims is not None:
        left = claims.lapses_in_seconds
        renewed = round(max(0.0, LEASE_REPORTS * worker.report_seconds - left))
        lapse = f"{claims.running} held, renewed {renewed} s ago"
        if left < 0:
            lapse = f"{claims.running} held, lapsed {span(-left)} ago"
    state, words = "claims", "claims"
    if worker.silent:
        state, words = "gone", f"silent since {since(picture, worker)}"
    elif worker.draining:
        state, words = "draining", "draining"
    elif worker.drain_asked_by is not None:
        state, words = "draining", f"asked to drain by {worker.drain_asked_by}"
    owned = len(held.slots) if held is not None else 0
    return row(
        tag("th", worker.worker_id, scope="row"),
        tag("td", words, class_=f"state {state}"),
        tag("td", _bar(worker.running, worker.capacity), f"{worker.running} / {worker.capacity}", class_="num load"),
        tag(
            "td",
            f"{owned:,} ({owned / SLOT_COUNT:.0%})",
            class_="num",
            title=slots(arcs_of(held.slots), 20) if held is not None else None,
        ),
        late_words(worst_of(held.late) if held is not None else None),
        tag("td", number(held.due) if held is not None else "–", class_="num"),
        tag("td", lapse, class_="num"),
        tag("td", worker.epoch or "–", class_="num"),
        tag("td", worker.version, tag("small", f" tz {worker.tzdata}")),
        tag("td", ", ".join(worker.handlers), class_="handlers"),
        id=f"k-{worker.worker_id}",
    )


def _bar(running: int, capacity: int) -> Markup:
    return tag("meter", value=running, min=0, max=max(capacity, 1), aria_label=f"{running} of {capacity} places busy")
