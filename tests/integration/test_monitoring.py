"""The shipped alert rules, scrape jobs and dashboard: right by promtool, about metrics that exist, and explained."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringcron.metrics import DECLARED
from tests.support.prometheus import (
    DEPLOY,
    PrometheusBinaries,
    dashboard_expressions,
    find_prometheus,
    metrics_in,
    shipped_rules,
)

METRICS = {metric.name: metric for metric in DECLARED}
RULES = shipped_rules()
README = (DEPLOY / "README.md").read_text()
FOLDER = DEPLOY / "prometheus"


@pytest.fixture(scope="module")
def binaries() -> PrometheusBinaries:
    return find_prometheus()


def test_promtool_finds_no_fault_in_rules_and_scrape_jobs(binaries: PrometheusBinaries) -> None:
    assert f"{len(RULES)} rules found" in binaries.check("check", "rules", "ringcron.rules.yml", folder=FOLDER)
    binaries.check("check", "config", "prometheus.yml", folder=FOLDER)


def test_each_rule_is_silent_and_fires_when_its_test_says_so(binaries: PrometheusBinaries) -> None:
    assert "SUCCESS" in binaries.check("test", "rules", "ringcron.rules.test.yml", folder=FOLDER)


def test_each_rule_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    tests = yaml.safe_load((FOLDER / "ringcron.rules.test.yml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == RULES.keys()
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == RULES.keys()


@pytest.mark.parametrize("name", RULES)
def test_each_rule_reads_metrics_that_exist_and_says_what_to_do(name: str) -> None:
    rule = RULES[name]
    assert metrics_in(rule["expr"])
    assert metrics_in(rule["expr"]) <= METRICS.keys()
    for read in metrics_in(rule["expr"]):
        assert labels_in(rule["expr"], read) <= {*METRICS[read].labels, "le", "job", "instance"}
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["annotations"]["runbook"] == f"deploy/README.md#{name.lower()}"
    assert f"\n#### {name}\n" in README


def labels_in(expression: str, metric: str) -> set[str]:
    """The labels by which an expression selects series of a metric."""
    selectors = re.findall(rf"\b{metric}(?:_bucket|_sum|_count)?{{([^}}]*)}}", expression)
    return {name for selector in selectors for name in re.findall(r"(\w+)\s*(?:=|!)", selector)}


def test_the_readme_explains_no_alert_that_there_is_not() -> None:
    assert set(re.findall(r"^#### (\w+)$", README, re.MULTILINE)) == RULES.keys()


def test_the_dashboard_is_what_its_program_makes() -> None:
    made = _program(DEPLOY / "grafana/dashboard.py")
    assert made.FILE.read_text() == made.text(), "run python deploy/grafana/dashboard.py"


def _program(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("dashboard", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_metric_of_the_dashboard_exists_and_whatever_can_alert_can_be_seen() -> None:
    drawn = {metric for _, expression in dashboard_expressions() for metric in metrics_in(expression)}
    assert drawn <= METRICS.keys()
    alerting = {metric for rule in RULES.values() for metric in metrics_in(rule["expr"])}
    assert alerting <= drawn


def test_panels_do_not_overlap_and_legends_name_labels_that_exist() -> None:
    document = json.loads((DEPLOY / "grafana/ringcron.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in document["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells)
        taken |= cells
        for target in panel.get("targets", ()):
            named = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            known = {label for metric in metrics_in(target["expr"]) for label in METRICS[metric].labels}
            assert named <= known | {"job", "instance"}, target
    assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])
