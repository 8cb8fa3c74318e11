"""What a person on call sees while things happen: a worker is killed, a spike comes, a job is dead."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.programs import Api, Program, Programs
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(300)]
WORKERS = ("w-1", "w-2", "w-3")
SESSION_SECONDS = 10
PATIENCE = 90_000
"""Milliseconds: what is waited for comes within seconds, on a machine that is not busy."""


class Pool:
    """A coordinator, three workers and an API."""

    def __init__(self, programs: Programs, database_url: str, zookeeper: str) -> None:
        settings: dict[str, Any] = {"session_seconds": SESSION_SECONDS}
        programs.coordinator(database_url, zookeeper, quiet_seconds=1, **settings)
        self.workers: dict[str, Program] = {
            name: programs.worker(database_url, zookeeper, name=name, lease_seconds=4, concurrency=4, **settings)
            for name in WORKERS
        }
        self.api: Api = programs.api(database_url)
        until_sync(self._is_whole, seconds=90, what="every slot has an owner")

    def _is_whole(self) -> bool:
        shards = self.api.call("GET", "/shards")[1]
        return (
            len(shards["items"]) == len(WORKERS)
            and all(item["arcs"] for item in shards["items"])
            and not shards["unowned"]
        )

    def create(self, count: int, *, ahead_seconds: float, **body: Any) -> list[str]:
        at = datetime.now(UTC) + timedelta(seconds=ahead_seconds)
        job = {"runAt": at.isoformat().replace("+00:00", "Z"), **body}
        status, answer = self.api.call("POST", "/jobs/batch", {"jobs": [job] * count})
        assert status == 207
        return [result["jobId"] for result in answer["results"]]


@pytest.fixture
def pool(programs: Programs, database_url: str, zookeeper_hosts: str) -> Pool:
    return Pool(programs, database_url, zookeeper_hosts)


def test_a_killed_worker_shows_slots_without_owner_and_then_heals(
    pool: Pool, browser_page: Callable[..., Any], shoot: Callable[[Any, str], None]
) -> None:
    page = browser_page()
    page.goto(f"{pool.api.url}/dashboard/shards")
    page.wait_for_selector("#age.live")
    assert page.locator("#heat tr").count() == 3
    assert page.locator("#heat tr#r-nobody").count() == 0
    shoot(page, "shards-live")
    pool.workers["w-2"].kill()
    page.wait_for_selector("#heat tr#r-nobody", timeout=PATIENCE)  # by the stream: nobody loads the page again
    assert "no owner" in page.inner_text("#r-nobody")
    assert "have no owner since" in page.inner_text("#verdict-line")
    assert "w-2" in page.inner_text("#heat .silent >> xpath=..")
    assert page.locator("#ring path.lx").count() >= 1
    shoot(page, "shards-worker-killed")
    page.wait_for_selector("#heat tr#r-nobody", state="detached", timeout=PATIENCE)
    page.wait_for_selector("#epochs:has-text('1 left (w-2.')", timeout=PATIENCE)
    page.wait_for_selector("#heat .strip >> nth=2", state="detached", timeout=PATIENCE)
    assert page.locator("#ring path.lx").count() == 0
    shoot(page, "shards-healed")


def test_a_spike_fills_and_clears_and_a_dead_job_is_redriven(
    pool: Pool, browser_page: Callable[..., Any], shoot: Callable[[Any, str], None]
) -> None:
    (dead,) = pool.create(
        1, ahead_seconds=0, handler="fail", name="nightly-invoice", payload={"message": "402 Payment Required"},
        retry={"maxAttempts": 1},
    )  # fmt: skip
    pool.create(
        60, ahead_seconds=0, handler="sleep", payload={"seconds": 0.2}
    )  # so that it is known how long a run takes
    pool.create(240, ahead_seconds=8, handler="sleep", payload={"seconds": 1})
    page = browser_page()
    page.goto(f"{pool.api.url}/dashboard/spikes")
    page.wait_for_selector("#age.live")
    page.wait_for_selector("#sentence:has-text('240 jobs become due')", timeout=PATIENCE)
    overview = browser_page()
    overview.goto(f"{pool.api.url}/dashboard")
    overview.wait_for_selector("#verdict .verdict.bad", timeout=PATIENCE)
    assert "due jobs wait, the oldest for" in overview.inner_text("#verdict h1")
    assert "All workers are at their limit" in overview.inner_text("#verdict")
    assert "it is over in about" in overview.inner_text("#verdict")
    shoot(overview, "overview-spike")
    shoot(page, "spikes-filled")
    overview.wait_for_selector("#verdict .verdict:not(.bad)", timeout=PATIENCE)
    page.wait_for_selector("#now div:has(dt:text-is('due now')) dd:text-is('0')", timeout=PATIENCE)
    assert page.locator("#pace path.due").count() == 1
    shoot(page, "spikes-cleared")

    page.goto(f"{pool.api.url}/dashboard/dead")
    page.click("text=failed at attempt 1 of 1")
    assert "402 Payment Required" in page.inner_text("pre")
    page.click(f"text={dead}")
    assert "It is dead until a person redrives or deletes it" in page.inner_text("#explanation")
    redrive = page.locator("form.act", has=page.locator("button:text-is('Redrive')"))
    redrive.locator("input[name=reason]").fill("the card was renewed")
    redrive.locator("button").click()
    page.wait_for_selector("text=Redriven: it is due again")
    until_sync(lambda: len(pool.api.call("GET", f"/jobs/{dead}/runs")[1]) == 2, seconds=60, what="it ran again")
    page.wait_for_selector(".occurrences ol a >> nth=1", timeout=PATIENCE)
    assert "the card was renewed" in page.inner_text("main")
    shoot(page, "job-redriven")
    entries = pool.api.call("GET", f"/jobs/{dead}/audit")[1]
    assert [(entry["action"], entry["detail"]["reason"]) for entry in entries] == [("redrive", "the card was renewed")]
    assert json.dumps(entries).count("dashboard") == 1
