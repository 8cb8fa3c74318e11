"""The list of metrics: what core/metrics.md says, what each program exports, how many series there can be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from ringcron import metrics
from ringcron.instruments import DECLARED, OTHERS, Children, Declared, Shown
from ringcron.models import RunOutcome, SkipReason

PAGE = Path(__file__).parents[2] / "core" / "metrics.md"

NAMES_OF_LABELS = {
    "ringcron_run_start_delay_seconds": {"cause"},
    "ringcron_runs_total": {"outcome"},
    "ringcron_stale_writes_total": {"operation"},
    "ringcron_occurrences_missed_total": {"reason"},
    "ringcron_cancels_total": {"result"},
    "ringcron_slot_lag_seconds": {"slot"},
    "ringcron_slot_due_jobs": {"slot"},
}
"""What dashboards of others may build on."""


def rows() -> Iterator[str]:
    yield "| metric | kind; labels | of | meaning |"
    yield "| --- | --- | --- | --- |"
    for metric in DECLARED:
        labels = "".join(f"; `{label}`: {values}" for label, values in metric.labels.items())
        yield f"| `{metric.name}` | {metric.kind}{labels} | {', '.join(metric.programs)} | {metric.meaning} |"


def test_the_page_lists_what_the_code_has() -> None:
    page = PAGE.read_text()
    begin, end = page.index("| metric |"), page.index("\n\n", page.index("| metric |"))
    table = "\n".join(rows())
    if os.environ.get("RINGCRON_REFRESH_METRICS"):
        PAGE.write_text(page[:begin] + table + page[end:])
        return
    assert page[begin:end] == table, "write it again: RINGCRON_REFRESH_METRICS=1 pytest tests/unit/test_metrics.py"


@pytest.mark.parametrize("metric", DECLARED, ids=lambda metric: metric.name)
def test_names_labels_and_meanings(metric: Declared) -> None:
    assert metric.name.startswith("ringcron_")
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.meaning
    assert all(values for values in metric.labels.values())
    assert metric.labels.keys() == NAMES_OF_LABELS.get(metric.name, metric.labels.keys())
    assert not {"job", "job_id", "run", "run_id", "key", "instance"} & metric.labels.keys()


def test_everything_of_ours_in_the_registry_is_declared() -> None:
    found = {family.name for family in REGISTRY.collect() if family.name.startswith("ringcron_")}
    assert found == {metric.name.removesuffix("_total") for metric in DECLARED}
    assert NAMES_OF_LABELS.keys() <= {metric.name for metric in DECLARED}


def test_series_of_closed_lists_are_there_before_the_first_event() -> None:
    assert metrics.RUNS.keys() >= {*RunOutcome}
    assert metrics.OCCURRENCES_MISSED.keys() >= {*SkipReason}
    assert metrics.CANCELS.keys() == {"cancelled", "conflict"}
    assert metrics.RUN_START_DELAY.keys() == {"planned", "retry", "recovered"}


def test_the_spikes_tail_is_inside_the_buckets() -> None:
    assert max(metrics.DELAY_BUCKETS) == 3600
    assert any(500 <= bound < 1000 for bound in metrics.DELAY_BUCKETS)


def test_a_child_is_looked_up_once_and_then_kept() -> None:
    assert isinstance(metrics.RUN_DURATION, Children)
    child = metrics.RUN_DURATION["test_metrics"]
    assert metrics.RUN_DURATION["test_metrics"] is child
    assert "test_metrics" in metrics.RUN_DURATION


@pytest.fixture
def gauge() -> Iterator[Shown]:
    gauge = Shown("test_shown", "For a test", "handler", at_most=2)
    yield gauge
    REGISTRY.unregister(gauge)


def shown() -> dict[str, float]:
    return {
        sample.labels["handler"]: sample.value
        for family in text_string_to_metric_families(generate_latest().decode())
        for sample in family.samples
        if sample.name == "test_shown"
    }


def test_a_shown_gauge_has_only_the_values_last_shown(gauge: Shown) -> None:
    assert shown() == {}
    gauge.show({"a": 1, "b": 2})
    assert shown() == {"a": 1, "b": 2}
    gauge.show({"b": 3})
    assert shown() == {"b": 3}
    gauge.clear()
    assert shown() == {}


def test_a_label_that_callers_choose_cannot_grow_without_bound(gauge: Shown) -> None:
    gauge.show({f"h{n}": n for n in range(1000)})
    assert shown() == {"h999": 999, "h998": 998, OTHERS: sum(range(998))}


_EXPORTED = """
import sys
from prometheus_client import generate_latest
from ringcron import metrics
metrics.keep_only(sys.argv[1])
print(generate_latest().decode())
"""


@pytest.mark.parametrize("program", ["api", "coordinator", "worker"])
def test_a_program_exports_its_own_metrics_and_nobody_elses(program: str) -> None:
    said = subprocess.run([sys.executable, "-c", _EXPORTED, program], capture_output=True, text=True, check=True)
    exported = {family.name for family in text_string_to_metric_families(said.stdout)}
    expected = {metric.name.removesuffix("_total") for metric in DECLARED if program in metric.programs}
    assert {name for name in exported if name.startswith("ringcron_")} == expected
    unset = {"ringcron_members", "ringcron_due_jobs", "ringcron_slots_unowned", "ringcron_jobs_overdue_without_lease"}
    assert not any(line.split(" ")[0] in unset for line in said.stdout.splitlines() if not line.startswith("#"))
