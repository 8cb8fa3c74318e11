"""A real Prometheus and its promtool: those on PATH, else Debian's package unpacked into the cache, not installed."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringcron.local.cache import cache_folder, filled, unpack_debs
from ringcron.local.errors import NotAvailable
from ringcron.local.processes import end, free_port, launch
from ringcron.metrics import DECLARED
from tests.support.waiting import until_sync

PACKAGE = "prometheus"
DEPLOY = Path(__file__).parents[2] / "deploy"


@dataclass(frozen=True, kw_only=True)
class PrometheusBinaries:
    """The two programs."""

    prometheus: Path
    promtool: Path

    def check(self, *arguments: object, folder: Path) -> str:
        """What promtool says; AssertionError with its words where it finds a fault."""
        said = subprocess.run(
            [self.promtool, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False
        )
        assert said.returncode == 0, said.stdout + said.stderr
        return said.stdout


def find_prometheus() -> PrometheusBinaries:
    """The programs. Skips the test, saying why, where they are not to be had."""
    found = [shutil.which(name) for name in ("prometheus", "promtool")]
    if all(found):
        return PrometheusBinaries(prometheus=Path(found[0] or ""), promtool=Path(found[1] or ""))
    try:
        folder = filled(cache_folder() / PACKAGE, lambda scratch: unpack_debs([PACKAGE], scratch))
    except NotAvailable as reason:
        pytest.skip(f"no Prometheus here and the package cannot be fetched: {reason}")
    binaries = PrometheusBinaries(prometheus=folder / "usr/bin/prometheus", promtool=folder / "usr/bin/promtool")
    if subprocess.run([binaries.promtool, "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"the package {PACKAGE} was unpacked into {folder}, but its programs do not run here")
    return binaries


class Prometheus:
    """A running Prometheus."""

    def __init__(self, url: str) -> None:
        self._url = url

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False

    def get(self, path: str, **parameters: str) -> Any:
        """`data` of an answer."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{query}", timeout=10) as answer:
            document = json.load(answer)
        assert document["status"] == "success"
        return document["data"]

    def value(self, expression: str) -> float | None:
        """The value of an expression of one element or none."""
        found = self.get("query", query=expression)["result"]
        assert len(found) <= 1
        return float(found[0]["value"][1]) if found else None

    def targets_up(self) -> set[str]:
        """The jobs of the targets that answer."""
        targets = self.get("targets")["activeTargets"]
        return {target["labels"]["job"] for target in targets if target["health"] == "up"}

    def rules(self) -> dict[str, dict[str, Any]]:
        """Each alert by its name: state, health, lastError, alerts."""
        return {rule["name"]: rule for group in self.get("rules")["groups"] for rule in group["rules"]}


@contextmanager
def running_prometheus(folder: Path, targets: dict[str, int]) -> Iterator[Prometheus]:
    """Prometheus with the shipped configuration and rules, but for where the `targets` (port by job) are, and for how
    often it looks: every second."""
    binaries = find_prometheus()
    configuration = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "500ms", "scrape_timeout": "1s"}
    configuration["rule_files"] = [str(DEPLOY / "prometheus/ringcron.rules.yml")]
    for job in configuration["scrape_configs"]:
        del job["dns_sd_configs"]
        job["static_configs"] = [{"targets": [f"127.0.0.1:{targets.pop(job['job_name'])}"]}]
    assert not targets
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    port = free_port()
    process = launch(
        [
            binaries.prometheus,
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        environment={"PATH": "/usr/bin:/bin"},
        log=folder / "prometheus.log",
    )
    try:
        prometheus = Prometheus(f"http://127.0.0.1:{port}")
        until_sync(prometheus.answers, seconds=30, what="Prometheus answers")
        yield prometheus
    finally:
        end(process, signal.SIGTERM, seconds=10)


def metrics_in(text: str) -> set[str]:
    """The metrics that an expression, or a file of expressions, reads; of a histogram's series the histogram."""
    found = set(re.findall(r"\bringcron_[a-z_]+", text))
    kinds = {metric.name: metric.kind for metric in DECLARED}
    bare = {name: re.sub(r"_(bucket|sum|count)$", "", name) for name in found}
    return {bare[name] if kinds.get(bare[name]) == "histogram" else name for name in found}


def shipped_rules() -> dict[str, dict[str, Any]]:
    """The shipped alerts by name."""
    document = yaml.safe_load((DEPLOY / "prometheus/ringcron.rules.yml").read_text())
    return {rule["alert"]: rule for group in document["groups"] for rule in group["rules"]}


def dashboard_expressions() -> Iterator[tuple[str, str]]:
    """Each expression of the shipped dashboard with its panel's title, as Prometheus gets it from Grafana."""
    document = json.loads((DEPLOY / "grafana/ringcron.json").read_text())
    for panel in document["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"].replace("$__rate_interval", "1m")
    for annotation in document["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]
