"""The load test's numbers, record and page."""

from __future__ import annotations

import json
import re

import pytest

from loadtest.distributions import Distribution, cumulative, percentile, rates
from loadtest.outcome import Bar, BarChart, HeatMap, LineChart, Outcome, Series, Table
from loadtest.record import record_document
from loadtest.report import render


@pytest.fixture
def outcome() -> Outcome:
    outcome = Outcome(
        command="spike", title="Spike <b>", question="When & why?", arguments={"jobs": 2000, "one-slot": True}
    )
    outcome.figure("last start after T", [495.2, 496.0, 498.1], "s", ideal=495.0)
    outcome.tables.append(Table(title="Delays", columns=("jobs", "p50"), rows=[["lone", "1.2"]]))
    outcome.charts += [
        LineChart(title="Curve", x="time (s)", y="jobs", series=[Series(name="</script>", points=[(0.0, 1.0)])]),
        HeatMap(
            title="Lag", x="time (s)", y="shard", unit="s", rows=["w-1"], columns=[0, 1], cells=[[None]], nothing="-"
        ),
        BarChart(title="Bars", x="per second", bars=[Bar(name="a", value=1.0)]),
    ]
    outcome.runs.append({"counts": {"missed": 0}, "startedAt": [0.1]})
    return outcome


def page_of(outcome: Outcome) -> str:
    return render(record_document(outcome, machine={"processors": 2}, versions={"python": "3"}))


def test_the_page_is_whole_and_needs_nothing_else(outcome: Outcome) -> None:
    page = page_of(outcome)
    assert "Spike &lt;b&gt;" in page
    assert "When &amp; why?" in page
    assert "python -m loadtest spike --jobs 2000 --one-slot" in page
    assert "496 s  (495 to 498, 3 runs)" in page
    assert "No duplicates, no early starts, nothing missed." in page
    assert not re.search(r"(src|href)=", page)
    assert [address for address in re.findall(r"https?://[^\s\"'<]+", page) if "w3.org" not in address] == []


def test_the_data_on_the_page_cannot_end_their_element(outcome: Outcome) -> None:
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page_of(outcome), re.DOTALL)
    assert found is not None
    charts = json.loads(found[1])
    assert [chart["kind"] for chart in charts] == ["lines", "heat", "bars"]
    assert charts[0]["series"][0]["name"] == "</script>"


def test_faults_stand_on_the_page_and_in_the_record(outcome: Outcome) -> None:
    outcome.problems.append("1 of 2,000 started twice: <id>")
    document = record_document(outcome, machine={}, versions={})
    assert document["clean"] is False
    page = render(document)
    assert "1 of 2,000 started twice: &lt;id&gt;" in page
    assert "No duplicates" not in page


def test_a_record_is_json_and_has_every_repetition(outcome: Outcome) -> None:
    document = json.loads(json.dumps(record_document(outcome, machine={}, versions={})))
    (figure,) = document["figures"]
    assert (figure["median"], figure["values"], figure["ideal"]) == (496.0, [495.2, 496.0, 498.1], 495.0)
    assert document["runs"] == [{"counts": {"missed": 0}, "startedAt": [0.1]}]


def test_percentiles_are_by_nearest_rank() -> None:
    ordered = [float(value) for value in range(1, 101)]
    assert (percentile(ordered, 50), percentile(ordered, 99), percentile(ordered, 100)) == (50, 99, 100)
    assert percentile([7.0], 50) == percentile([7.0], 99) == 7.0
    assert Distribution.of([3.0, 1.0, 2.0]).p50 == 2.0
    with pytest.raises(ValueError, match="no values"):
        Distribution.of([])


def test_curves_keep_first_and_last_and_rates_keep_the_sum() -> None:
    instants = [10 + index / 1000 for index in range(2000)]
    points = cumulative(instants, 10.0)
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (pytest.approx(1.999), 2000)
    assert len(points) < 500
    counted = rates(instants, 10.0, until=12.0, width=0.1)
    assert len(counted) == 20
    assert sum(rate * 0.1 for _, rate in counted) == pytest.approx(2000)
