"""The load test, end to end: a spike of a few jobs on a cluster that it starts itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.processes
def test_a_small_spike_is_measured_and_judged(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loadtest", "spike", "--jobs", "20", "--workers", "1", "--concurrency", "20"]
    command += ["--job-seconds", "0", "--no-zookeeper", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["clean"] is True
    (run,) = record["runs"]
    counts = {"expected": 20, "started": 20, "succeeded": 20, "duplicates": 0, "early": 0, "missed": 0}
    assert run["counts"].items() >= counts.items()
    assert len(run["startedAt"]) == len(run["claimedAt"]) == 20
    assert record["versions"]["postgresqlSettings"]["fsync"] == "on"
    assert [chart["kind"] for chart in record["charts"]] == ["lines", "lines", "heat"]
    assert "last start after T" in (tmp_path / "report.html").read_text()
    assert "no duplicates, no early starts, nothing missed" in done.stdout
