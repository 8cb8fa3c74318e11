"""S38: what a real Prometheus makes of real processes, with the shipped scrape jobs, rules and dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringcron.local.processes import free_port
from ringcron.metrics import DECLARED
from tests.acceptance.conftest import Cluster, instant
from tests.support.prometheus import dashboard_expressions, find_prometheus, running_prometheus, shipped_rules
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]


def test_prometheus_scrapes_every_program_and_evaluates_the_shipped_rules(
    cluster: Cluster, zookeeper_hosts: str, tmp_path: Path
) -> None:
    find_prometheus()
    ports = {"coordinator": free_port(), "worker": free_port()}
    unclaimable = cluster.create(runAt=instant(-1), handler="nobody-has-it", payload={})
    coordinator = cluster.programs.coordinator(
        cluster.database_url, zookeeper_hosts, metrics_port=ports["coordinator"], quiet_seconds=0.2
    )
    cluster.worker(zookeeper=zookeeper_hosts, metrics_port=ports["worker"])
    api_port = int(cluster.api.url.rsplit(":", 1)[1])
    with running_prometheus(tmp_path, {"api": api_port, **ports}) as prometheus:
        until_sync(lambda: prometheus.targets_up() == {"api", "coordinator", "worker"}, seconds=30, what="all are up")
        job = cluster.create(runAt=instant(0), handler="quick", payload={})
        cluster.ended_runs(job["jobId"], 1)
        until_sync(lambda: prometheus.value('sum(ringcron_runs_total{outcome="succeeded"})') == 1, seconds=30)
        assert prometheus.value("sum(ringcron_run_start_delay_seconds_count)") == 1
        assert prometheus.value("sum(ringcron_claim_jobs_sum)") == 1
        until_sync(lambda: prometheus.value("ringcron_slots_unowned") == 0, seconds=30, what="each slot has an owner")
        assert prometheus.value("ringcron_members") == 1
        assert abs(prometheus.value("ringcron_clock_offset_seconds") or 9) < 5
        until_sync(
            lambda: prometheus.value("ringcron_due_next_minute_jobs") is not None, seconds=30, what="a census was taken"
        )

        # each program has its own metrics and no other's
        exported = prometheus.get("label/__name__/values")
        assert {name for name in exported if name.endswith("_created")} == set()
        for metric in DECLARED:
            found = prometheus.get("query", query=f"count by (job) ({_series(metric.name, metric.kind)})")["result"]
            assert {series["metric"]["job"] for series in found} <= set(metric.programs), metric.name

        # every rule can be evaluated; what is wrong is seen, and nothing else
        rules = until_sync(lambda: _evaluated(prometheus.rules()), seconds=30, what="every rule was evaluated")
        assert rules.keys() == shipped_rules().keys()
        assert {name: rule["lastError"] for name, rule in rules.items() if rule["health"] != "ok"} == {}
        until_sync(lambda: prometheus.rules()["NoWorkerForHandler"]["state"] == "pending", seconds=30)
        raised = prometheus.rules()["NoWorkerForHandler"]["alerts"]
        assert [alert["labels"]["handler"] for alert in raised] == ["nobody-has-it"]
        until_sync(
            lambda: (
                [name for name, rule in prometheus.rules().items() if rule["state"] != "inactive"]
                == ["NoWorkerForHandler"]
            ),
            seconds=30,
            what="no other alert is raised",
        )

        for title, expression in dashboard_expressions():
            assert "result" in prometheus.get("query", query=expression), title

        # without its only coordinator the rules are not silent
        coordinator.kill()
        until_sync(
            lambda: prometheus.rules()["NoLeader"]["state"] == "pending", seconds=30, what="no leader is noticed"
        )
    assert cluster.job(unclaimable["jobId"])["state"] == "due"


def _series(name: str, kind: str) -> str:
    return f"{name}_count" if kind == "histogram" else name


def _evaluated(rules: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    return rules if rules and all(rule["health"] != "unknown" for rule in rules.values()) else {}
