"""Markup, words, the heat map, the ring, the charts. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from ringcron.alerts import AlertKind
from ringcron.models import Arc, JobState, RetryPolicy, Slice
from ringcron.store.lag import Lag, SlotLag
from ringcron.store.looking import Transit
from ringcron.store.snapshot import Pace
from ringcron_api.dashboard.alarms import Alarm, Alarms
from ringcron_api.dashboard.alert_parts import alarms_table
from ringcron_api.dashboard.charts import ahead_chart, pace_chart
from ringcron_api.dashboard.job_words import attempt_words
from ringcron_api.dashboard.markup import Markup, join, tag
from ringcron_api.dashboard.phrases import counted, slots, span
from ringcron_api.dashboard.ring_drawing import Strip, group_size, level_of, ring_svg, strip_of
from ringcron_api.shards import RingView, SlotLate, ring_of
from tests.support.spikes import spike_ahead
from tests.support.values import job_of, report_of

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def ring(*arcs: tuple[int, int], lag: tuple[SlotLag, ...] = ()) -> RingView:
    workers = [
        report_of(f"w-{number}.1", slices=(Slice(handlers=("log",), arcs=(Arc(lo=lo, hi=hi),)),))
        for number, (lo, hi) in enumerate(arcs)
    ]
    return ring_of(workers, Lag(taken_at=NOW, slots=lag))


def test_text_is_escaped_and_markup_is_not() -> None:
    made = tag("a", "<b>", tag("i", "&"), None, [1, "\"'"], href='"><script>', class_="x", disabled=False, hidden=True)
    assert made == ('<a href="&quot;&gt;&lt;script&gt;" class="x" hidden>&lt;b&gt;<i>&amp;</i>1&quot;&#x27;</a>')
    assert join("<", Markup("<br>")) == "&lt;<br>"
    assert tag("input", name="a", data_view="b") == '<input name="a" data-view="b">'


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (92, "1 min 32 s"), (7500, "2 h 5 min"), (86400, "1 d")],
)  # fmt: skip
def test_spans(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_attempts_beyond_the_limit_are_explained() -> None:
    once = replace(job_of().definition, retry=RetryPolicy(max_attempts=1))
    assert attempt_words(job_of(attempt=2), "of") == "<span>2 of 5</span>"
    assert "2 (1 lost) / 1<" in attempt_words(job_of(attempt=2, lost=1, definition=once), "/")
    assert "2 (lost ones too) / 1<" in attempt_words(job_of(attempt=2, definition=once), "/")


def test_counts_and_slots() -> None:
    assert (counted(1, "job"), counted(1234, "job"), counted(1000, "job", capped=True)) == (
        "1 job",
        "1,234 jobs",
        "1,000+ jobs",
    )
    assert slots([Arc(lo=7, hi=7)]) == "slot 7"
    assert slots([Arc(lo=n * 10, hi=n * 10 + 1) for n in range(5)]) == "slots 0–1, 10–11, 20–21 and 2 more arcs"


def test_each_level_begins_where_the_one_before_ends() -> None:
    edges = (0.0, 0.5, 0.51, 1.0, 1.1, 5.0, 5.1, 30.0, 31.0, 120.0, 121.0)
    assert [level_of(seconds) for seconds in edges] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]


def test_a_quiet_pool_of_two_hundred_is_a_small_page() -> None:
    view = ring(*((n * 4096 // 200, (n + 1) * 4096 // 200 - 1) for n in range(200)))
    assert group_size(view) == 1
    strips = [strip_of(Strip(slots=tuple(sorted(h.slots)), group=1, late=h.late), "w") for h in view.held]
    assert max(len(strip) for strip in strips) < 250


def test_cells_show_the_worst_of_their_slots() -> None:
    late = {0: SlotLate(0.1, 1), 1: SlotLate(40.0, 2), 6: SlotLate(2.0, 1)}
    strip = strip_of(Strip(slots=tuple(range(8)), group=2, late=late), "w-1")
    assert re.findall(r'class="(l\d)" d="([^"]+)"', strip) == [
        ("l4", "M0 0h1v1h-1z"),
        ("l0", "M1 0h2v1h-2z"),
        ("l2", "M3 0h1v1h-1z"),
    ]
    assert 'data-late="0:40.0:3,3:2.0:1"' in strip
    assert 'data-arcs="0-7"' in strip
    assert 'class="lx"' in strip_of(Strip(slots=(1, 2), group=1, late={}), "nobody", unowned=True)


def test_the_ring_has_every_slice_what_nobody_owns_and_what_moves() -> None:
    view = ring((0, 1023), (1024, 3071))
    drawn = ring_svg(view, [Transit(arc=Arc(lo=1000, hi=1023), giver="w-0.1", taker="w-1.1")])
    for told in (
        "w-0.1: slots 0–1023",
        "w-1.1: slots 1024–3071",
        "no owner: slots 3072–4095",
        "in handover: slots 1000–1023, w-0.1 → w-1.1",
        "2 workers, 3,072 of 4,096 slots owned, 1 arc in handover",
    ):
        assert told in drawn
    whole = ring_svg(ring((0, 4095), (0, 4095)), [])
    assert 'class="whole w0"' in whole  # as workers without ZooKeeper have it
    assert "NaN" not in drawn + whole


def test_charts_have_gaps_where_nobody_looked() -> None:
    chart = pace_chart(Pace(until=NOW, due=(None, 5, 5, None, 2), started=(0, 3, 3, 0, 1)))
    (waited,) = re.findall(r'd="([^"]+)" class="due"', chart)
    assert waited.count("Z") == 2
    assert "at most 5 jobs waited, at most 3 runs began in a second" in chart
    assert pace_chart(Pace(until=NOW)).count("<svg") == 1
    due = {0: 4, 2: 9, 3599: 1}
    ahead = ahead_chart(spike_ahead(due, start=NOW).outlook.coming)
    (bars,) = re.findall(r'd="([^"]+)" class="ahead"', ahead)
    assert bars.startswith("M0 120v-")
    assert bars.count("M") == 2  # the first two fall into the same five seconds
    assert "14 jobs, at most 9 in a second" in ahead


def test_alerts_are_a_table_with_links() -> None:
    alarm = Alarm(
        job_id=UUID(int=7),
        job="<nightly>",
        handler="log",
        state=JobState.PAUSED,
        kind=AlertKind.NO_SUCCESS,
        since=NOW,
        limit_seconds=86400,
    )
    drawn = alarms_table(Alarms(found=(alarm,), capped=True))
    assert f'<a href="/dashboard/jobs/{UUID(int=7)}">&lt;nightly&gt;</a>' in drawn
    assert "has had no success for 1 d" in drawn
    assert "2027-01-01 00:00:00" in drawn
    assert "there may be more" in drawn
    assert "No job breaches an alert." in alarms_table(Alarms())
