"""One test per sentence of the brief, by its number, as a user would see it: real programs, real servers."""

from __future__ import annotations

import itertools
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import psycopg
import pytest

from tests.acceptance.conftest import LEASE_SECONDS, Cluster, instant
from tests.support.waiting import until_sync

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def overlapping(witness: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of runs of one job of which the second began before the first ended."""
    found = []
    by_run: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in witness:
        by_run.setdefault((line["job"], line["generation"]), []).append(line)
    runs = sorted(by_run.items(), key=lambda item: (item[0][0], item[1][0]["at"]))
    for (first_key, first), (second_key, second) in itertools.pairwise(runs):
        if first_key[0] == second_key[0] and second[0]["at"] < first[-1]["at"]:
            found.append((first[-1], second[0]))
    return found


def test_s1_a_one_off_runs_once_and_not_before_its_instant(cluster: Cluster) -> None:
    """S1, S12: a job can be scheduled once, for a future time."""
    cluster.worker()
    job = cluster.create(runAt=instant(1.5), handler="quick", payload={"n": 1})
    assert job["state"] == "due"

    (run,) = cluster.ended_runs(job["jobId"], 1)

    assert run["outcome"] == "succeeded"
    assert run["result"] == {"n": 1}
    assert at(run["startedAt"]) >= at(job["runAt"])
    assert cluster.job(job["jobId"])["state"] == "done"
    assert len(cluster.witness("begin")) == 1


def test_s2_s19_a_recurring_job_runs_at_its_ticks_and_does_not_drift(cluster: Cluster) -> None:
    """S2, S19, A44: the next run is computed from the schedule, not from the finish time."""
    cluster.worker()
    job = cluster.create(schedule={"every": "PT1S"}, handler="slow", payload={"seconds": 0.3})

    runs = cluster.ended_runs(job["jobId"], 4)

    ticks = [at(run["scheduledFor"]) for run in runs]
    first = at(job["nextRuns"][0])
    assert ticks == [first + n * timedelta(seconds=1) for n in range(len(ticks))]
    assert all(at(run["startedAt"]) >= at(run["scheduledFor"]) for run in runs)


def test_s3_s20_a_cancelled_job_never_runs(cluster: Cluster) -> None:
    """S3, S20: a scheduled job can be cancelled, also one that is about to run."""
    cluster.worker()
    job = cluster.create(runAt=instant(3.0), handler="quick")
    later = cluster.create(runAt=instant(3.5), handler="quick")

    assert cluster.api.call("DELETE", f"/jobs/{job['jobId']}")[0] == 204
    assert cluster.api.call("DELETE", f"/jobs/{job['jobId']}")[0] == 204

    cluster.ended_runs(later["jobId"], 1)
    assert cluster.witness(job_id=job["jobId"]) == []
    assert cluster.job(job["jobId"])["state"] == "cancelled"
    assert cluster.runs(job["jobId"]) == []


def test_s4_s14_what_happened_to_each_run_is_reported(cluster: Cluster) -> None:
    """S4, S14, S16, A57: runs are plural, hostile texts cleaned and cut; the running one is first, without an end."""
    cluster.worker()
    job = cluster.create(
        runAt=instant(0), handler="failing", payload={"times": 1}, retry={"minBackoff": "PT0.2S", "maxAttempts": 3}
    )
    first, second = cluster.ended_runs(job["jobId"], 2)

    assert [first["outcome"], second["outcome"]] == ["failed", "succeeded"]
    assert [first["attempt"], second["attempt"]] == [1, 2]
    assert first["error"].startswith("boom")
    assert "\x00" not in first["error"]
    assert len(first["error"]) <= 8192
    assert first["runId"] != second["runId"]
    assert "status" not in cluster.job(job["jobId"])

    slow = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 2})
    cluster.begun(slow["jobId"])
    (running,) = cluster.runs(slow["jobId"])
    assert (running["finishedAt"], running["outcome"]) == (None, None)
    assert running["runId"] == cluster.job(slow["jobId"])["runId"]


def test_s5_s17_s37_a_job_never_runs_on_two_workers_at_the_same_time(cluster: Cluster) -> None:
    """S5, S17, A29: 200 one-offs at one instant, three workers that share the whole ring."""
    for n in range(3):
        cluster.worker(f"w-{n}")
    when = instant(2.0)
    jobs = [cluster.create(runAt=when, handler="quick")["jobId"] for _ in range(200)]

    until_sync(lambda: len(cluster.witness("end")) >= 200, seconds=30)
    for job in jobs:
        cluster.ended_runs(job, 1)

    assert sorted(line["job"] for line in cluster.witness("begin")) == sorted(jobs)


def test_s6_s18_s26_a_job_whose_worker_is_killed_runs_again(cluster: Cluster) -> None:
    """S6, S18, S26, L1: the lease lapses and another worker picks the job up, by itself, as attempt 2."""
    doomed = cluster.worker("doomed")
    job = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 8})
    first = cluster.begun(job["jobId"])
    other = cluster.worker("other")
    until_sync(lambda: other.events("worker started"))
    reported = [run["workerId"].split(".")[0] for run in cluster.runs(job["jobId"])]
    assert reported == ["doomed"]

    doomed.kill()
    killed_at = first["at"]
    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) == 2, seconds=3 * (LEASE_SECONDS + 1) + 4)
    lost, again = cluster.ended_runs(job["jobId"], 2)

    assert (lost["outcome"], lost["attempt"]) == ("lost", 1)
    assert (again["outcome"], again["attempt"]) == ("succeeded", 2)
    assert again["leaseGeneration"] > lost["leaseGeneration"]
    assert again["scheduledFor"] == lost["scheduledFor"]
    assert cluster.witness("begin", job["jobId"])[1]["at"] - killed_at >= LEASE_SECONDS * 0.9


def test_s22_a_job_longer_than_its_lease_runs_once(cluster: Cluster) -> None:
    """S22, A37: the lease is renewed while the job runs, so it can be short while the job is long."""
    cluster.worker()
    cluster.worker("other")
    job = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 2.5 * LEASE_SECONDS})

    (run,) = cluster.ended_runs(job["jobId"], 1)

    assert run["outcome"] == "succeeded"
    assert len(cluster.witness("begin", job["jobId"])) == 1


def test_s27_s33_a_worker_paused_past_its_lease_has_its_late_write_refused(cluster: Cluster) -> None:
    """S27, S33, L4: paused past the lease and the reap; its write carries the old generation and is rejected."""
    paused = cluster.worker("paused")
    job = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 1.0})
    cluster.begun(job["jobId"])
    paused.pause()
    cluster.worker("other")

    until_sync(lambda: len(cluster.witness("end", job["jobId"])) == 1, seconds=3 * (LEASE_SECONDS + 2))
    lost, again = cluster.ended_runs(job["jobId"], 2)
    paused.resume()
    refused = until_sync(lambda: paused.events("write refused: the lease is gone"), seconds=10)

    assert refused[0]["held_generation"] == lost["leaseGeneration"]
    assert refused[0]["current_generation"] == again["leaseGeneration"] > lost["leaseGeneration"]
    assert [run["outcome"] for run in cluster.ended_runs(job["jobId"], 2)] == ["lost", "succeeded"]
    assert paused.running, "it goes on working once it knows"


@pytest.mark.parametrize(("handler", "payload"), [("hog", {}), ("plain-beats", {"seconds": 60})])
def test_a_plain_handler_is_gone_before_its_job_starts_elsewhere(
    cluster: Cluster, handler: str, payload: dict[str, Any]
) -> None:
    """L3: one that holds the GIL, and one in a process of its own whose worker is paused."""
    paused = cluster.worker("paused")
    job = cluster.create(runAt=instant(0), handler=handler, payload=payload)
    first = cluster.begun(job["jobId"])
    paused.pause()
    cluster.worker("other")

    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) == 2, seconds=3 * (LEASE_SECONDS + 2))
    second = cluster.witness("begin", job["jobId"])[1]

    beats = [line for line in cluster.witness(job_id=job["jobId"]) if line["pid"] == first["pid"]]
    assert beats[-1]["at"] < second["at"]
    assert not psutil.pid_exists(first["pid"]) or psutil.Process(first["pid"]).status() == psutil.STATUS_ZOMBIE


def test_a_handler_that_swallows_cancellation_takes_its_worker_along(cluster: Cluster) -> None:
    """Design §5: still running at the end of trust: the process exits, before the job can start elsewhere."""
    stubborn = cluster.worker("stubborn")
    job = cluster.create(runAt=instant(0), handler="beats", payload={"seconds": 60, "stubborn": True})
    first = cluster.begun(job["jobId"])
    other = cluster.worker("other")
    with psycopg.connect(cluster.database_url, autocommit=True) as connection:
        # The worker's renewals are refused from now on, as if its lease had been taken back; it learns of it before
        # the lease lapses, or it might take the job back itself.
        connection.execute(
            "update jobs set lease_owner = 'somebody', lease_until = now() + %s * interval '1 s' where id = %s",
            (LEASE_SECONDS, job["jobId"]),
        )

    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) == 2, seconds=3 * 2 * LEASE_SECONDS + 10)
    stubborn.wait(3 * LEASE_SECONDS)

    assert other.running
    assert cluster.witness("begin", job["jobId"])[1]["pid"] != first["pid"]


def test_s7_s28_with_the_database_away_nothing_is_lost_and_runs_are_handed_back(
    make_cluster: Any, own_postgres: Any
) -> None:
    """S7, S28: stopped for longer than two leases; what ran is `interrupted`, not `lost`; what was due runs, late."""
    server = own_postgres()
    cluster: Cluster = make_cluster(server.url)
    worker = cluster.worker()
    cluster.worker("w-2")
    job = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 6})
    due_meanwhile = [cluster.create(runAt=instant(3), handler="quick")["jobId"] for _ in range(20)]
    cluster.begun(job["jobId"])

    server.stop()
    stopped_at = time.monotonic()
    status, problem = cluster.api.call("POST", "/jobs", {"runAt": instant(1), "handler": "quick"})
    assert (status, problem["code"]) == (503, "store-unavailable")
    until_sync(lambda: time.monotonic() > stopped_at + 2.2 * LEASE_SECONDS, seconds=60, what="the outage has lasted")
    server.start()

    runs = cluster.ended_runs(job["jobId"], 2, seconds=60)
    for each in due_meanwhile:
        assert [run["outcome"] for run in cluster.ended_runs(each, 1, seconds=60)] == ["succeeded"]
    assert [run["outcome"] for run in runs] == ["interrupted", "succeeded"]
    assert [run["attempt"] for run in runs] == [1, 1]
    assert worker.running
    assert overlapping(cluster.witness()) == []


def test_s29_a_job_that_always_fails_ends_where_a_person_sees_it(cluster: Cluster) -> None:
    """S29: attempts are capped."""
    cluster.worker()
    job = cluster.create(
        runAt=instant(0), handler="failing", retry={"maxAttempts": 3, "minBackoff": "PT0.1S", "maxBackoff": "PT0.2S"}
    )

    runs = cluster.ended_runs(job["jobId"], 3)
    until_sync(lambda: cluster.job(job["jobId"])["state"] == "dead")

    assert [run["attempt"] for run in runs] == [1, 2, 3]
    dead = cluster.job(job["jobId"])
    assert dead["deadReason"].startswith("failed at attempt 3 of 3: boom")
    assert dead["nextRunAt"] is None
    _, listed = cluster.api.call("GET", "/jobs?state=dead")
    assert [item["jobId"] for item in listed["items"]] == [job["jobId"]]


def test_a38_a_job_that_kills_its_worker_is_convicted_and_its_mates_are_not(cluster: Cluster) -> None:
    """L6, A38: three losses in a row, the last ones alone; then dead."""
    worker = cluster.worker("w-0")
    mate = cluster.create(runAt=instant(1), handler="slow", payload={"seconds": 1.0})
    killer = cluster.create(runAt=instant(1), handler="kill-worker", retry={"maxLost": 3})
    for n in range(1, 4):
        worker.wait(60)
        worker = cluster.worker(f"w-{n}")
    until_sync(lambda: cluster.job(killer["jobId"])["state"] == "dead", seconds=60)

    assert [run["outcome"] for run in cluster.runs(killer["jobId"])] == ["lost"] * 3
    assert cluster.ended_runs(mate["jobId"], 2)[-1]["outcome"] == "succeeded"
    assert worker.running


def test_s35_of_a_cancel_and_a_claim_exactly_one_wins(cluster: Cluster) -> None:
    """S13, S35, A56: 204 and it never ran, or 409 and it did."""
    cluster.worker(concurrency=200)
    won = {204: 0, 409: 0}
    for milliseconds in (-5, -2, 0, 2, 4, 6, 10):
        when = instant(1.0)
        job_id = cluster.create(runAt=when, handler="slow", payload={"seconds": 0.5})["jobId"]
        answers: list[tuple[int, Any]] = []
        ahead = (at(when) - datetime.now(UTC)).total_seconds() + milliseconds / 1000
        timer = threading.Timer(ahead, lambda job_id=job_id, answers=answers: answers.append(cancel(cluster, job_id)))
        timer.start()
        timer.join()
        ((status, problem),) = answers
        won[status] += 1
        if status == 204:
            assert cluster.job(job_id)["state"] == "cancelled"
            assert cluster.witness(job_id=job_id) == []
        else:
            assert problem["code"] == "job-claimed"
            assert problem["runId"].startswith(job_id)
            assert cluster.ended_runs(job_id, 1)[0]["outcome"] == "succeeded"
    assert sum(won.values()) == 7


def cancel(cluster: Cluster, job_id: str) -> tuple[int, Any]:
    return cluster.api.call("DELETE", f"/jobs/{job_id}")


def test_s36_a_job_longer_than_its_interval_skips_and_says_so(cluster: Cluster) -> None:
    """S36, A43, L13: never two at once; one skip record a run, reason overlap."""
    cluster.worker()
    job = cluster.create(schedule={"every": "PT1S"}, handler="slow", payload={"seconds": 2.4})

    runs = cluster.ended_runs(job["jobId"], 3)
    skips = cluster.skips(job["jobId"])

    assert overlapping(cluster.witness()) == []
    assert {skip["reason"] for skip in skips} == {"overlap"}
    skipped = {at(skip["from"]): skip["count"] for skip in skips}
    second = timedelta(seconds=1)
    for earlier, later in itertools.pairwise(at(run["scheduledFor"]) for run in runs):
        assert later - earlier >= 3 * second
        assert later == earlier + (skipped[earlier + second] + 1) * second


def test_a27_missed_ticks_are_run_once_and_told(cluster: Cluster) -> None:
    """A27, A45: nobody was there; the newest tick runs, one skip tells the rest."""
    job = cluster.create(schedule={"every": "PT1S"}, handler="quick")
    first = at(job["nextRuns"][0])
    until_sync(lambda: datetime.now(UTC) > first + timedelta(seconds=4), seconds=20)
    cluster.worker()

    runs = cluster.ended_runs(job["jobId"], 2)
    (skip,) = [skip for skip in cluster.skips(job["jobId"]) if skip["reason"] == "missed"]

    caught_up = at(runs[0]["scheduledFor"])
    assert runs[0]["cause"] == "catchup"
    assert (at(skip["from"]), skip["count"]) == (first, (caught_up - first) // timedelta(seconds=1))
    assert at(runs[1]["scheduledFor"]) == caught_up + timedelta(seconds=1)


def test_sigterm_drains_and_spends_no_attempt(cluster: Cluster) -> None:
    """A36, L2: leases are renewed while it drains; what does not finish in time is handed back as interrupted."""
    worker = cluster.worker(drain_seconds=1.5 * LEASE_SECONDS)
    finishes = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 1.2 * LEASE_SECONDS})
    cluster.begun(finishes["jobId"])
    handed_back = cluster.create(runAt=instant(0), handler="slow", payload={"seconds": 30})
    cluster.begun(handed_back["jobId"])

    worker.terminate()
    late = cluster.create(runAt=instant(0), handler="quick")
    assert worker.wait(4 * LEASE_SECONDS) == 0

    assert [run["outcome"] for run in cluster.runs(finishes["jobId"])] == ["succeeded"]
    assert [(run["outcome"], run["attempt"]) for run in cluster.runs(handed_back["jobId"])] == [("interrupted", 1)]
    job = cluster.job(handed_back["jobId"])
    assert (job["state"], job["attempt"], job["leaseOwner"]) == ("due", 0, None)
    assert cluster.witness(job_id=late["jobId"]) == []


def test_a_handler_that_ignores_the_drain_takes_its_worker_along(cluster: Cluster) -> None:
    """Nothing may run on when nobody renews its lease: the worker exits, and the job runs elsewhere, never beside."""
    draining = cluster.worker("draining", drain_seconds=1)
    job = cluster.create(runAt=instant(0), handler="beats", payload={"seconds": 60, "stubborn": True})
    first = cluster.begun(job["jobId"])
    cluster.worker("other")

    draining.terminate()
    draining.wait(4 * LEASE_SECONDS)
    until_sync(lambda: len(cluster.witness("begin", job["jobId"])) == 2, seconds=3 * LEASE_SECONDS + 10)

    second = cluster.witness("begin", job["jobId"])[1]
    beats = [line["at"] for line in cluster.witness(job_id=job["jobId"]) if line["pid"] == first["pid"]]
    assert max(beats) < second["at"]


def test_a_row_that_cannot_be_written_holds_up_no_other(cluster: Cluster) -> None:
    """A completion that fails by itself is put aside; those behind it are written."""
    cluster.worker()
    with psycopg.connect(cluster.database_url, autocommit=True) as connection:
        connection.execute(
            """
            create function refuse() returns trigger language plpgsql as
            $$ begin raise exception 'disk trouble' using errcode = 'XX001'; end $$
            """
        )
        bad = cluster.create(runAt=instant(1.0), handler="quick", payload={"bad": True})
        connection.execute(
            """
            create trigger refuse before insert on runs for each row
            when (new.result @> '{"bad": true}') execute function refuse()
            """
        )
        others = [cluster.create(runAt=instant(1.0), handler="quick")["jobId"] for _ in range(10)]
        for other in others:
            cluster.ended_runs(other, 1)
        assert cluster.job(bad["jobId"])["state"] == "claimed"
        connection.execute("drop trigger refuse on runs")
        cluster.ended_runs(bad["jobId"], 1, seconds=40)


def test_s21_s25_the_api_documentation_says_what_is_promised(cluster: Cluster) -> None:
    """S21, S25: at least once, be idempotent; not strictly by due time."""
    status, document = cluster.api.call("GET", "/openapi.json")
    assert status == 200
    text = document["info"]["description"]
    assert "At least once" in text
    assert "must be idempotent" in text
    assert "not executed strictly by due time" in text


def test_s15_s16_the_rows_hold_what_the_brief_names(cluster: Cluster) -> None:
    """S15, S16: one row per job, one per run."""
    with psycopg.connect(cluster.database_url) as connection:
        columns = {
            (table, column)
            for table, column in connection.execute(
                "select table_name, column_name from information_schema.columns where table_name in ('jobs', 'runs')"
            )
        }
        (definition,) = connection.execute(
            "select indexdef from pg_indexes where indexname = 'jobs_due'"
        ).fetchone() or (None,)
    named = {
        "jobs": "id schedule payload state next_run_at lease_until lease_owner lease_generation attempt",
        "runs": "job_id attempt worker_id started_at finished_at outcome",
    }
    assert {(table, column) for table, names in named.items() for column in names.split()} <= columns
    assert "WHERE (state = 'due'" in definition


def test_s32_lone_jobs_start_at_their_instant_and_never_before(cluster: Cluster) -> None:
    """S32: the table is the timer; the promise of a poll (1 s) is asserted with three times its value."""
    cluster.worker()
    jobs = [cluster.create(runAt=instant(1.5 + 0.3 * n), handler="quick") for n in range(5)]

    for job in jobs:
        (run,) = cluster.ended_runs(job["jobId"], 1)
        late = at(run["startedAt"]) - at(job["runAt"])
        assert timedelta(0) <= late < timedelta(seconds=3)
