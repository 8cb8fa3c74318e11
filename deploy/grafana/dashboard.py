"""Makes ringcron.json, the Grafana dashboard: `python deploy/grafana/dashboard.py`. Change this file, not the JSON.

Lag, due, dead, members and the like are shown by the leader alone: `max` over the coordinators. Counters are added up.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("ringcron.json")
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
RATE: Final = "[$__rate_interval]"
WIDTH: Final = 24

Panel = dict[str, Any]


def tile(title: str, expression: str, *, unit: str = "none", amber: float | None = None, red: float = 1) -> Panel:
    """One number, coloured by thresholds; without a value it says so, because that is news too."""
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if amber is not None:
        steps.append({"color": "orange", "value": amber})
    steps.append({"color": "red", "value": red})
    return {
        "type": "stat",
        "title": title,
        "gridPos": {"w": 4, "h": 4},
        "targets": [_target("A", expression, "")],
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "noValue": "nobody leads",
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "background", "graphMode": "area"},
    }


def lines(title: str, unit: str, targets: dict[str, str], *, about: str = "", stacked: bool = False) -> Panel:
    """Curves: expression by legend."""
    drawn = {"fillOpacity": 40, "stacking": {"mode": "normal"}} if stacked else {"fillOpacity": 0}
    return {
        "type": "timeseries",
        "title": title,
        "description": about,
        "gridPos": {"w": 12, "h": 8},
        "targets": [
            _target(chr(ord("A") + number), expression, legend)
            for number, (legend, expression) in enumerate(targets.items())
        ],
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"lineWidth": 1, **drawn}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
    }


def row(title: str) -> Panel:
    return {"type": "row", "title": title, "gridPos": {"w": WIDTH, "h": 1}, "collapsed": False, "panels": []}


def _target(letter: str, expression: str, legend: str) -> dict[str, Any]:
    return {"refId": letter, "expr": expression, "legendFormat": legend, "datasource": DATASOURCE}


def quantile(share: float, metric: str, by: str = "le", where: str = "") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket{where}{RATE})))"


def panels() -> list[Panel]:
    delay, duration = "ringcron_run_start_delay_seconds", "ringcron_run_duration_seconds"
    claim, http = "ringcron_claim_duration_seconds", "ringcron_http_request_duration_seconds"
    return [
        tile(
            "Oldest due job waits",
            "max(ringcron_slot_lag_seconds) or 0 * max(ringcron_due_jobs)",
            unit="s",
            amber=5,
            red=300,
        ),
        tile("Due now", "max(ringcron_due_jobs)", amber=100, red=5000),
        tile("Due within a minute", "max(ringcron_due_next_minute_jobs)", amber=1000, red=20000),
        tile("Handlers that no worker has", "count(max by (handler) (ringcron_unclaimable_jobs) > 0) or vector(0)"),
        tile("Dead jobs", "max(ringcron_dead_jobs)", amber=1, red=100),
        tile("Slots without owner", "max(ringcron_slots_unowned)"),
        row("Is it late, and where?"),
        lines("Lag per worker's slice", "s", {"{{worker}}": "max by (worker) (ringcron_slice_lag_seconds)"}),
        lines(
            "The ten slots that lag most",
            "s",
            {"slot {{slot}}": "topk(10, max by (slot) (ringcron_slot_lag_seconds))"},
            about="All workers late alike: too few places. One slice late: its worker is slow; others help.",
        ),
        lines(
            "Due jobs in the ten fullest slots",
            "none",
            {"slot {{slot}}": "topk(10, max by (slot) (ringcron_slot_due_jobs))"},
            stacked=True,
        ),
        lines(
            "Jobs whose handler nobody has",
            "none",
            {"{{handler}}": "max by (handler) (ringcron_unclaimable_jobs)"},
            about="They wait, and nothing is lost; start a worker that has the handler.",
        ),
        lines(
            "What waits for a person",
            "none",
            {
                "dead": "max(ringcron_dead_jobs)",
                "overdue and held by nobody": "max(ringcron_jobs_overdue_without_lease)",
            },
        ),
        row("The flow"),
        lines(
            "Due, claimed, started, finished a second",
            "ops",
            {
                "due (next minute)": "max(ringcron_due_next_minute_jobs) / 60",
                "claimed": f"sum(rate(ringcron_claim_jobs_sum{RATE}))",
                "started": f"sum(rate({delay}_count{RATE}))",
                "finished": f"sum(rate(ringcron_runs_total{RATE}))",
            },
        ),
        lines(
            "Start delay",
            "s",
            {
                "p50": quantile(0.5, delay, where='{cause="planned"}'),
                "p90": quantile(0.9, delay, where='{cause="planned"}'),
                "p99": quantile(0.99, delay, where='{cause="planned"}'),
                "p99 after a lapsed lease": quantile(0.99, delay, where='{cause="recovered"}'),
            },
        ),
        lines(
            "Completions by outcome",
            "ops",
            {"{{outcome}}": f"sum by (outcome) (rate(ringcron_runs_total{RATE}))"},
            stacked=True,
        ),
        lines(
            "Ticks not run, by reason; jobs that died",
            "ops",
            {
                "{{reason}}": f"sum by (reason) (rate(ringcron_occurrences_missed_total{RATE}))",
                "died": f"sum(rate(ringcron_jobs_died_total{RATE}))",
            },
        ),
        lines("Duration of runs, p95 by handler", "s", {"{{handler}}": quantile(0.95, duration, by="handler, le")}),
        lines(
            "Oldest run in progress, by handler",
            "s",
            {"{{handler}}": "max by (handler) (ringcron_oldest_run_age_seconds)"},
        ),
        row("Workers, leases, epochs"),
        lines(
            "Places",
            "none",
            {"running": "sum(ringcron_worker_running)", "capacity": "sum(ringcron_worker_capacity)"},
        ),
        lines(
            "Workers and epochs",
            "none",
            {
                "members": "max(ringcron_members)",
                "nodes not understood": "max(ringcron_bad_members)",
                "assignments a minute": f"60 * max(rate(ringcron_assignment_epoch{RATE}))",
                "slots in transit": "max(ringcron_slots_in_transit)",
                "owners passed over a minute": f"60 * sum(rate(ringcron_acks_overdue_total{RATE}))",
                "leaders": "sum(ringcron_coordinator_leader)",
                "processes with a session": "sum(ringcron_membership_up)",
            },
        ),
        lines(
            "Leases",
            "ops",
            {
                "lapsed": f"sum(rate(ringcron_leases_lapsed_total{RATE}))",
                "renewals that failed": f"sum(rate(ringcron_lease_renew_failures_total{RATE}))",
                "stale: {{operation}}": f"sum by (operation) (rate(ringcron_stale_writes_total{RATE}))",
                "trust ended": f"sum(rate(ringcron_trust_ended_total{RATE}))",
            },
            about="Lapsed: a worker died or stopped. Stale: it woke and was refused, as it should be.",
        ),
        lines("Clock offset to the database", "s", {"{{instance}}": "ringcron_clock_offset_seconds"}),
        row("The database"),
        lines(
            "Claims",
            "s",
            {"p50 {{kind}}": quantile(0.5, claim, by="kind, le"), "p99 {{kind}}": quantile(0.99, claim, by="kind, le")},
        ),
        lines(
            "Claims a second, and those that found nothing",
            "ops",
            {
                "{{kind}}": f"sum by (kind) (rate(ringcron_claim_jobs_count{RATE}))",
                "{{kind}}, empty": f"sum by (kind) (rate(ringcron_claims_empty_total{RATE}))",
            },
        ),
        lines("Age of the oldest snapshot", "s", {"age": "max(ringcron_oldest_snapshot_age_seconds)"}),
        lines(
            "Statements tried again; duties that failed",
            "ops",
            {
                "{{sqlstate}}": f"sum by (sqlstate) (rate(ringcron_store_retries_total{RATE}))",
                "duty {{step}}": f"sum by (step) (rate(ringcron_upkeep_failures_total{RATE}))",
            },
        ),
        row("The API"),
        lines(
            "Requests by status",
            "ops",
            {"{{status}}": f"sum by (status) (rate(ringcron_http_requests_total{RATE}))"},
            stacked=True,
        ),
        lines("Time to answer, p99 by route", "s", {"{{route}}": quantile(0.99, http, by="route, le")}),
        lines("Cancels", "ops", {"{{result}}": f"sum by (result) (rate(ringcron_cancels_total{RATE}))"}),
        lines("Versions", "none", {"{{job}} {{version}}": "count by (job, version) (ringcron_build_info)"}),
    ]


def dashboard() -> dict[str, Any]:
    placed: list[Panel] = []
    x = y = height = 0
    for number, panel in enumerate(panels(), 1):
        size = panel["gridPos"]
        if x + size["w"] > WIDTH:
            x, y = 0, y + height
        placed.append({"id": number, "datasource": DATASOURCE, **panel, "gridPos": {"x": x, "y": y, **size}})
        x, height = x + size["w"], size["h"]
    return {
        "title": "ringcron",
        "uid": "ringcron",
        "description": "Made by deploy/grafana/dashboard.py",
        "tags": ["ringcron"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "utc",
        "graphTooltip": 1,
        "templating": {
            "list": [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
        "annotations": {
            "list": [
                {
                    "name": "New epoch",
                    "datasource": DATASOURCE,
                    "enable": False,
                    "iconColor": "purple",
                    "expr": "changes(ringcron_assignment_epoch[1m]) > 0",
                    "titleFormat": "assignment published",
                }
            ]
        },
        "panels": placed,
    }


def text() -> str:
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
