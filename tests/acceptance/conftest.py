"""A cluster of real programs for each acceptance test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.programs import Api, Program, Programs
from tests.support.waiting import until_sync

LEASE_SECONDS = 4.0
FOLDER = Path(__file__).parent


def instant(seconds_ahead: float) -> str:
    """RFC 3339, so many seconds from now."""
    at = datetime.now(UTC) + timedelta(seconds=seconds_ahead)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


class Cluster:
    """An API, and workers as the test starts them; `witness` is what handlers said they did."""

    def __init__(self, programs: Programs, database_url: str, folder: Path) -> None:
        self.programs = programs
        self.database_url = database_url
        self._witness = folder / "witness"
        self._witness.touch()
        self.api: Api = programs.api(database_url)  # at once: instants that tests name count from when it answers

    def worker(
        self,
        name: str = "w-1",
        zookeeper: str = "none",
        *,
        environment: Mapping[str, str] = MappingProxyType({}),
        **settings: Any,
    ) -> Program:
        settings = {"lease_seconds": LEASE_SECONDS, "concurrency": 10, "drain_seconds": 10, **settings}
        environment = {"WITNESS": str(self._witness), "PYTHONPATH": str(FOLDER), **environment}
        worker = self.programs.worker(
            self.database_url,
            zookeeper,
            name=name,
            handlers=("workload",),
            environment=environment,
            **settings,
        )
        until_sync(
            lambda: worker.events("worker started") or not worker.running, seconds=30, what=f"worker {name} is up"
        )
        assert worker.running, worker.text()
        return worker

    def create(self, **body: Any) -> dict[str, Any]:
        status, job = self.api.call("POST", "/jobs", body)
        assert status == 201, job
        return job  # type: ignore[no-any-return]

    def patch(self, job_id: str, body: dict[str, Any], query: str = "", *, status: int = 200) -> dict[str, Any]:
        answered, job = self.api.call("PATCH", f"/jobs/{job_id}{query}", body)
        assert answered == status, job
        return job  # type: ignore[no-any-return]

    def post(self, path: str, *, status: int = 202) -> dict[str, Any]:
        answered, body = self.api.call("POST", path)
        assert answered == status, body
        return body  # type: ignore[no-any-return]

    def until_state(self, job_id: str, wanted: str, seconds: float = 30.0) -> dict[str, Any]:
        """The job, once it is in this state."""
        until_sync(lambda: self.job(job_id)["state"] == wanted, seconds=seconds, what=f"{job_id} is {wanted}")
        return self.job(job_id)

    def job(self, job_id: str) -> dict[str, Any]:
        status, job = self.api.call("GET", f"/jobs/{job_id}")
        assert status == 200, job
        return job  # type: ignore[no-any-return]

    def runs(self, job_id: str) -> list[dict[str, Any]]:
        status, runs = self.api.call("GET", f"/jobs/{job_id}/runs")
        assert status == 200, runs
        return runs  # type: ignore[no-any-return]

    def skips(self, job_id: str) -> list[dict[str, Any]]:
        status, skips = self.api.call("GET", f"/jobs/{job_id}/skips")
        assert status == 200, skips
        return skips  # type: ignore[no-any-return]

    def witness(self, event: str | None = None, job_id: str | None = None) -> list[dict[str, Any]]:
        """What handlers said, in the order of their saying."""
        lines = [json.loads(line) for line in self._witness.read_text().splitlines()]
        return [
            line
            for line in lines
            if (event is None or line["event"] == event) and (job_id is None or line["job"] == job_id)
        ]

    def ended_runs(self, job_id: str, count: int, seconds: float = 30.0) -> list[dict[str, Any]]:
        """The runs of a job, oldest first, once `count` of them have ended."""

        def ended() -> list[dict[str, Any]]:
            return [run for run in self.runs(job_id) if run["outcome"] is not None]

        until_sync(lambda: len(ended()) >= count, seconds=seconds, what=f"{count} runs of {job_id} have ended")
        return ended()[::-1]

    def begun(self, job_id: str, seconds: float = 20.0) -> dict[str, Any]:
        """What the handler said when it first began."""
        until_sync(lambda: self.witness("begin", job_id), seconds=seconds, what=f"{job_id} has begun")
        return self.witness("begin", job_id)[0]


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.close()


@pytest.fixture
def cluster(programs: Programs, database_url: str, tmp_path: Path) -> Cluster:
    return Cluster(programs, database_url, tmp_path)


@pytest.fixture
def make_cluster(programs: Programs, tmp_path: Path) -> Callable[[str], Cluster]:
    return lambda database_url: Cluster(programs, database_url, tmp_path)
