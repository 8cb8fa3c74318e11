"""The parts of the pages that change by themselves, as functions of a picture. The stream renews the same parts.

Invariant: a part says nothing that changes with the second alone, so that a quiet pool sends next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ringcron.instants import format_instant
from ringcron_api.dashboard.alert_parts import alarms_table
from ringcron_api.dashboard.charts import ahead_chart, pace_chart
from ringcron_api.dashboard.heat import heat_rows
from ringcron_api.dashboard.layout import row, table, verdict_card, verdict_line
from ringcron_api.dashboard.markup import Child, Markup, join, tag
from ringcron_api.dashboard.phrases import clock, counted, moment, number, span
from ringcron_api.dashboard.picture import Picture
from ringcron_api.dashboard.ring_drawing import late_words, level_of, ring_svg
from ringcron_api.dashboard.spike import TARGET_SECONDS
from ringcron_api.dashboard.spike_words import sentence
from ringcron_api.dashboard.worker_parts import worker_rows

SLOTS_SHOWN: Final = 24
EPOCHS_SHOWN: Final = 8
_NOT_KNOWN: Final = "not known"
_NO_EPOCH: Final = "No coordinator has published an assignment since this was installed."

Parts = dict[str, "Markup | dict[str, Markup]"]
"""By the id of the element that holds it; the rows of a table by theirs."""


def overview_parts(picture: Picture) -> Parts:
    return {
        "verdict": verdict_card(picture.verdict),
        "tiles": _tiles(picture),
        "heat": heat_rows(picture),
        "pace": pace_chart(picture.snapshot.pace),
        "sentence": tag("p", sentence(picture.spike), class_="lead"),
        "epochs": _last_epochs(picture),
    }


def shards_parts(picture: Picture) -> Parts:
    return {
        "verdict-line": verdict_line(picture.verdict),
        "heat": heat_rows(picture),
        "ring": ring_svg(picture.ring, picture.epochs[0].in_transit if picture.epochs else ()),
        "epochs": _epochs(picture),
        "slots": _slots(picture),
    }


def spikes_parts(picture: Picture) -> Parts:
    return {
        "verdict-line": verdict_line(picture.verdict),
        "sentence": tag("p", sentence(picture.spike), class_="lead"),
        "pace": pace_chart(picture.snapshot.pace),
        "now": _now(picture),
        "ahead": ahead_chart(picture.spike.outlook.coming) if picture.spike else _unknown(),
        "busiest": _busiest(picture),
    }


def alerts_parts(picture: Picture) -> Parts:
    return {"verdict-line": verdict_line(picture.verdict), "alerts": alarms_table(picture.alarms)}


def workers_parts(picture: Picture) -> Parts:
    return {"verdict-line": verdict_line(picture.verdict), "workers": worker_rows(picture)}


def line_parts(picture: Picture) -> Parts:
    """Of pages that do not change by themselves."""
    return {"verdict-line": verdict_line(picture.verdict)}


PARTS: Final[Mapping[str, Callable[[Picture], Parts]]] = {
    "overview": overview_parts,
    "shards": shards_parts,
    "spikes": spikes_parts,
    "jobs": line_parts,
    "dead": line_parts,
    "alerts": alerts_parts,
    "workers": workers_parts,
}


def _tiles(picture: Picture) -> Markup:
    snapshot, alarms = picture.snapshot, picture.alarms
    wanted = "–" if picture.spike is None else number(picture.spike.desired_capacity)
    oldest, due = snapshot.oldest_seconds, snapshot.due_at_all
    alive, known = len(picture.alive), picture.known
    tiles = (
        ("oldest wait", span(oldest) if due else "0 s", "/dashboard/shards", f"l{level_of(oldest)}"),
        ("due now", number(due, capped=snapshot.due_capped), "/dashboard/jobs?state=due&order=nextRunAt", ""),
        ("due next minute", number(snapshot.due_soon), "/dashboard/spikes", ""),
        ("running", f"{snapshot.running:,} / {picture.capacity:,}", "/dashboard/jobs?state=claimed", ""),
        ("capacity wanted", wanted, "/dashboard/spikes", ""),
        ("workers", f"{alive} / {known}" if known != alive else f"{alive}", "/dashboard/workers", ""),
        ("dead", number(snapshot.dead, capped=snapshot.dead >= 10_000), "/dashboard/dead", ""),
        ("alerts", number(len(alarms.found), capped=alarms.capped), "/dashboard/alerts", "l5" if alarms.found else ""),
    )
    return tag(
        "ul",
        [
            tag("li", tag("a", tag("b", value, class_=f"edge {name}" if name else None), tag("span", label), href=path))
            for label, value, path, name in tiles
        ],
        class_="tiles",
    )


def _epochs(picture: Picture) -> Markup:
    rows = [
        row(
            tag("td", epoch.epoch, class_="num"),
            moment(epoch.at),
            epoch.cause,
            tag("td", f"{epoch.slots_moved:,}", class_="num"),
            tag("td", f"{sum(len(one.arc) for one in epoch.in_transit):,}", class_="num"),
            tag("td", f"{epoch.slots_unowned:,}", class_="num"),
            tag("td", epoch.members, class_="num"),
            epoch.leader,
        )
        for epoch in picture.epochs
    ]
    head: tuple[Child, ...] = (
        tag("th", "epoch", scope="col", class_="num"),
        "published",
        "cause",
        *(tag("th", name, scope="col", class_="num") for name in ("moved", "in handover", "no owner", "members")),
        "by",
    )
    return table(head, rows, empty=_NO_EPOCH)


def _last_epochs(picture: Picture) -> Markup:
    """The same in short."""
    rows = [
        row(
            tag("td", epoch.epoch, class_="num"),
            tag("td", clock(epoch.at), title=format_instant(epoch.at)),
            epoch.cause,
            tag("td", f"{epoch.slots_moved:,}", class_="num"),
        )
        for epoch in picture.epochs[:EPOCHS_SHOWN]
    ]
    head: tuple[Child, ...] = (
        tag("th", "epoch", scope="col", class_="num"),
        "at (UTC)",
        "cause",
        tag("th", "slots moved", scope="col", class_="num"),
    )
    return table(head, rows, empty=_NO_EPOCH)


def _slots(picture: Picture) -> Markup:
    ring = picture.ring
    owner = {slot: held.worker.worker_id for held in ring.held for slot in held.slots}
    worst = sorted(ring.late.items(), key=lambda item: -item[1].lag_seconds)
    rows = [
        row(
            tag("td", slot, class_="num"),
            "no owner" if slot in ring.unowned else owner.get(slot, "no owner"),
            late_words(late),
            tag("td", number(late.due), class_="num"),
        )
        for slot, late in worst[:SLOTS_SHOWN]
    ]
    more = len(worst) - SLOTS_SHOWN
    head: tuple[Child, ...] = (
        tag("th", "slot", scope="col", class_="num"),
        "owner",
        tag("th", "oldest", scope="col", class_="num"),
        tag("th", "due", scope="col", class_="num"),
    )
    return join(
        table(head, rows, empty="No slot lags."),
        tag("p", f"and {counted(more, 'more slot')}; GET /shards has all of them", class_="note") if more > 0 else None,
    )


def _now(picture: Picture) -> Markup:
    snapshot, spike = picture.snapshot, picture.spike
    lately = snapshot.pace.started[-60:]
    rate = None if spike is None else spike.runs_per_second(picture.capacity)
    facts = (
        ("due now", number(snapshot.due_at_all, capped=snapshot.due_capped)),
        *((f"of these, for {one.handler}, which no worker has", number(one.due)) for one in snapshot.stranded[:5]),
        ("starts a second, last minute", f"{sum(lately) / max(len(lately), 1):.1f}"),
        ("a run takes", span(spike.outlook.mean_seconds) if spike and spike.measured else _NOT_KNOWN),
        ("starts a second at most", _NOT_KNOWN if rate is None else f"{rate:,.1f}"),
        ("until all that is due has started", span(snapshot.due / rate) if rate else _NOT_KNOWN),
        ("capacity wanted", _NOT_KNOWN if spike is None else f"{spike.desired_capacity:,} (now {picture.capacity:,})"),
        (
            f"capacity for {TARGET_SECONDS} s",
            number(spike.capacity_for_target) if spike and spike.measured else _NOT_KNOWN,
        ),
    )
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts wide")


def _busiest(picture: Picture) -> Markup:
    if picture.spike is None:
        return _unknown()
    rows = [row(clock(at), tag("td", number(due), class_="num")) for at, due in picture.spike.busiest]
    head: tuple[Child, ...] = ("second (UTC)", tag("th", "jobs", scope="col", class_="num"))
    return table(head, rows, empty="Nothing becomes due within the hour.")


def _unknown() -> Markup:
    return tag("p", "What becomes due is not known.", class_="none")
