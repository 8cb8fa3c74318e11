"""`ringcron up` (what `./dev up` starts): from an empty folder to everything running, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from ringcron.local.processes import free_port
from tests.support.servers import scratch_folder, zookeeper_client
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

START_SECONDS = 90
STOP_SECONDS = 60


class Up:
    """A running `ringcron up`."""

    def __init__(self, folder: Path, *flags: str, **variables: str) -> None:
        self.folder = folder
        self._output = folder / "output"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RINGCRON_")}
        environment |= {key: os.environ[key] for key in ("RINGCRON_CACHE",) if key in os.environ}
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ringcron", "up", "--workers", "2", "--data-dir", str(folder), *flags],
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**environment, "RINGCRON_DRAIN_SECONDS": "5", **variables},
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "up.json").read_text())
        return found

    def pid(self, name: str) -> int:
        (pid,) = [process["pid"] for process in self.document["processes"] if process["name"] == name]
        return int(pid)

    def until_ready(self) -> Up:
        until_sync(
            lambda: (self.folder / "up.json").exists() or self.process.poll() is not None,
            seconds=START_SECONDS,
            what="up.json is there",
        )
        assert self.process.poll() is None, self.output
        return self

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def call(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            self.document["apiUrl"] + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def runs_of(self, job_id: str) -> list[dict[str, Any]]:
        return [run for run in self.call("GET", f"/jobs/{job_id}/runs") if run["outcome"] is not None]

    def close(self) -> None:
        for process in [*self.descendants(), psutil.Process(self.process.pid)] if self.process.poll() is None else []:
            process.kill()
        self.process.wait()


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch_folder() as folder:
        yield folder


@pytest.fixture
def start(folder: Path) -> Iterator[Any]:
    started: list[Up] = []

    def start(*flags: str, api_port: int = 0, **variables: str) -> Up:
        started.append(Up(folder, "--api-port", str(api_port), *flags, **variables))
        return started[-1]

    yield start
    for up in started:
        up.close()


def gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def test_everything_is_up_runs_jobs_restarts_what_dies_and_leaves_nothing(start: Any, folder: Path) -> None:
    up = start().until_ready()
    document = up.document

    # up.json says what runs, and only its owner may read the password in it
    roles = sorted(process["role"] for process in document["processes"])
    assert roles == ["api", "coordinator", "coordinator", "postgres", "worker", "worker", "zookeeper"]
    assert {"apiUrl", "databaseUrl", "zookeeper", "processes"} == document.keys()
    for process in document["processes"]:
        assert psutil.pid_exists(process["pid"]), process
    assert stat.S_IMODE((folder / "up.json").stat().st_mode) == 0o600

    # the servers are real, PostgreSQL is durable, and what is printed shows no password
    password = document["databaseUrl"].split(":")[2].split("@")[0]
    with psycopg.connect(document["databaseUrl"]) as connection:
        assert connection.execute("show fsync").fetchone() == ("on",)
        assert connection.execute("show synchronous_commit").fetchone() == ("on",)
    with zookeeper_client(document["zookeeper"]) as client:
        assert client.get_children("/workers")
    assert document["apiUrl"] in up.output
    assert "ringcron is up" in up.output
    assert password not in up.output
    for process in document["processes"]:
        assert password not in " ".join(psutil.Process(process["pid"]).cmdline())

    # every slot has an owner and the samples are there
    assert up.call("GET", "/shards")["unowned"] == []
    assert len(up.call("GET", "/jobs?tag=sample")["items"]) == 3

    # the commands that are printed work as they stand
    for command in printed_commands(up.output):
        answer = json.loads(subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout)
        assert "jobId" in answer or "items" in answer, (command, answer)

    # a job runs
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    job = up.call("POST", "/jobs", {"runAt": soon, "payload": {"hello": "world"}})
    (run,) = until_sync(lambda: up.runs_of(job["jobId"]), seconds=30, what="the job has run")
    assert run["outcome"] == "succeeded"

    # what dies is started again: a worker, the API, the servers; jobs run afterwards
    for name in ("worker-1", "api", "coordinator-1", "zookeeper", "postgres"):
        old = up.pid(name)
        os.kill(old, signal.SIGKILL)
        until_sync(lambda name=name, old=old: up.pid(name) != old, seconds=30, what=f"{name} is started again")
    until_sync(lambda: answers(up), seconds=60, what="the API answers again")
    job = up.call("POST", "/jobs", {"runAt": soon})
    until_sync(lambda: up.runs_of(job["jobId"]), seconds=60, what="a job runs after every part was killed")

    # SIGTERM stops everything
    left = up.descendants()
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(STOP_SECONDS) == 0
    assert gone(left)
    assert not (folder / "up.json").exists()
    assert "killed" not in up.output.split("stopping:")[1].split("\n", 1)[1]

    # a second start on the same folder finds the jobs of the first
    again = start("--no-sample").until_ready()
    assert again.call("GET", f"/jobs/{job['jobId']}")["state"] == "done"


def test_it_comes_up_although_the_api_asks_for_a_key(start: Any) -> None:
    """RINGCRON_REQUIRE_KEYS=always, or a key made earlier: nobody can look whether the workers are there."""
    up = start("--zookeeper", "none", RINGCRON_REQUIRE_KEYS="always").until_ready()
    assert "the API asks for a key" in up.output
    assert not answers(up, "/jobs")


def printed_commands(output: str) -> list[str]:
    commands = re.findall(r"^  (curl (?:.*\\\n)*.*)$", output, re.MULTILINE)
    assert len(commands) == 5
    return [command for command in commands if "JOB_ID" not in command]


def answers(up: Up, path: str = "/readyz") -> bool:
    try:
        up.call("GET", path)
    except OSError:
        return False
    return True


ENDLESS = """
import os, time
from ringcron import handler

@handler
def endless(ctx, payload):
    with open("endless.pid", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(613)
"""


def sleepers(up: Up) -> int:
    return sum(process.cmdline() == ["sleep", "613"] for process in up.descendants())


def test_a_parent_that_is_killed_leaves_nothing_and_the_next_start_works(start: Any, folder: Path) -> None:
    (folder / "endless.py").write_text(ENDLESS)
    up = start("--no-sample", "--allow-commands", "--handlers", "endless").until_ready()
    # runs that could go on by themselves: a plain function in a process of its own, a program that has a child
    due = {"runAt": "2020-01-01T00:00:00Z"}
    up.call("POST", "/jobs", {**due, "handler": "endless"})
    up.call("POST", "/jobs", {**due, "handler": "command", "payload": {"shell": "sleep 613 & sleep 613"}})
    note = folder / "endless.pid"
    until_sync(lambda: sleepers(up) == 2 and note.exists() and note.read_text(), seconds=30, what="both runs go on")
    left = up.descendants()
    assert int(note.read_text()) in {process.pid for process in left}
    up.process.send_signal(signal.SIGKILL)
    up.process.wait()
    until_sync(lambda: gone(left), seconds=20, what="every descendant has ended")
    start("--no-sample").until_ready()


def test_one_folder_has_one_ringcron_up(start: Any) -> None:
    first = start("--no-sample", "--zookeeper", "none").until_ready()
    second = start("--no-sample", "--zookeeper", "none")
    assert second.process.wait(STOP_SECONDS) == 1
    assert f"another ringcron up (process {first.process.pid}) already runs" in second.output
    assert first.call("GET", "/readyz")["ready"] is True
    assert first.document["zookeeper"] == "none"


def test_a_port_that_is_taken_is_said_before_anything_starts(start: Any, folder: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        up = start(api_port=port)
        assert up.process.wait(STOP_SECONDS) == 1
    assert f"port {port} is in use" in up.output
    assert "--api-port" in up.output
    assert not (folder / "postgres").exists()


def test_a_module_that_cannot_be_imported_is_said_before_anything_starts(start: Any, folder: Path) -> None:
    up = start("--handlers", "no_such_module")
    assert up.process.wait(STOP_SECONDS) == 2
    assert "--handlers no_such_module: cannot be imported: ModuleNotFoundError" in up.output
    assert [path.name for path in folder.iterdir()] == ["output"]


NO_WORKERS = """
import os
if "RINGCRON_CONCURRENCY" in os.environ:
    raise RuntimeError("not in a worker")
"""


def test_a_program_that_cannot_start_ends_everything_with_its_reason(start: Any, folder: Path) -> None:
    (folder / "picky.py").write_text(NO_WORKERS)
    up = start("--zookeeper", "none", "--handlers", "picky")
    assert up.process.wait(STOP_SECONDS) == 1
    assert "not in a worker" in up.output
    assert re.search(r"worker-[12] ended with exit code 2", up.output)
