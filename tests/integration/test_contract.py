"""Lines of contract.md §3 and §4 that are about one answer as a whole: its fields, its defaults, its headers."""

from __future__ import annotations

import pytest

from tests.support.api import ApiCaller, running_api

pytestmark = pytest.mark.store

ALWAYS = {
    "jobId", "key", "name", "tags", "handler", "state", "payload", "nextRunAt", "scheduledFor", "attempt", "slot",
    "leaseOwner", "leaseUntil", "leaseGeneration", "runId", "pauseReason", "pausedBy", "deadReason", "retry", "timeout",
    "overlap", "catchup", "catchupWindow", "jitter", "onExhausted", "createdAt", "updatedAt",
}  # fmt: skip
DEFAULTS = {
    "handler": "default",
    "payload": None,
    "retry": {"maxAttempts": 5, "minBackoff": "PT5S", "maxBackoff": "PT1H", "multiplier": 2, "maxLost": 3},
    "timeout": None,
    "overlap": "skip",
    "catchup": "latest",
    "catchupWindow": "P365D",
    "jitter": "PT0S",
    "onExhausted": "continue",
    "key": None,
    "tags": [],
}


async def test_a_new_job_has_every_field_its_defaults_and_its_place(database_url: str) -> None:
    async with running_api(database_url) as api:
        created = await api.post("/jobs", {"schedule": "0 9 * * *"})
        assert created.status == 201
        assert created.headers["Location"] == f"/jobs/{created['jobId']}"
        assert created.body.keys() >= ALWAYS | {"schedule", "nextRuns"}
        assert "status" not in created.body
        assert {name: created[name] for name in DEFAULTS} == DEFAULTS
        assert len(created["nextRuns"]) == 10
        unclaimed = ("leaseOwner", "leaseUntil", "leaseGeneration", "runId", "pauseReason", "pausedBy", "deadReason")
        assert [created[name] for name in unclaimed] == [None] * len(unclaimed)
        assert (created["state"], created["attempt"]) == ("due", 0)
        assert await _next_run_at(api, created["jobId"]) == created["nextRunAt"]

        assert (await api.patch(f"/jobs/{created['jobId']}", {"paused": True})).status == 200
        assert await _next_run_at(api, created["jobId"]) is None
        assert (await api.delete(f"/jobs/{created['jobId']}")).status == 204
        assert await _next_run_at(api, created["jobId"]) is None


async def _next_run_at(api: ApiCaller, job_id: str) -> object:
    return (await api.get(f"/jobs/{job_id}"))["nextRunAt"]
