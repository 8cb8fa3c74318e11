"""What the client writes and reads: exact, aware, camelCase."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from ringcron.client import Cron, Every, Job, NewJob, Retry, Run, Shards, Skip
from ringcron.client.parameters import id_in_path, merge_patch_of, query_of
from ringcron.client.values import document_of, instant_text, read
from ringcron.durations import parse_duration
from ringcron.models import Arc, Catchup, JobState, Overlap, SkipReason

JOB: dict[str, Any] = {
    "jobId": "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e",
    "key": None,
    "name": None,
    "tags": ["a", "b"],
    "handler": "log",
    "state": "due",
    "schedule": {"cron": "0 9 * * *", "timezone": "Europe/Madrid"},
    "nextRunAt": "2027-01-31T09:00:00.25Z",
    "scheduledFor": "9000-01-01T00:00:00Z",
    "attempt": 0,
    "slot": 7,
    "leaseOwner": None,
    "leaseUntil": None,
    "leaseGeneration": None,
    "runId": None,
    "pauseReason": None,
    "pausedBy": None,
    "deadReason": None,
    "retry": {"maxAttempts": 5, "minBackoff": "PT5S", "maxBackoff": "PT1H", "multiplier": 2.0, "maxLost": 3},
    "timeout": "P400D",
    "alertAfterLate": "PT15M",
    "alertIfNoSuccessFor": None,
    "overlap": "skip",
    "catchup": "latest",
    "catchupWindow": "P365D",
    "jitter": "PT0S",
    "onExhausted": "continue",
    "createdAt": "2026-11-29T15:00:00Z",
    "updatedAt": "2026-11-29T15:00:00Z",
}


def test_a_job_is_read_with_aware_instants_and_durations() -> None:
    job = read(Job, JOB)
    assert job.next_run_at == datetime(2027, 1, 31, 9, 0, 0, 250_000, tzinfo=UTC)
    assert job.scheduled_for.year == 9000  # how a hostile instant is shown
    assert job.schedule == Cron("0 9 * * *", timezone="Europe/Madrid")
    assert job.retry.max_backoff == timedelta(hours=1)
    assert job.timeout == timedelta(days=400)
    assert job.state is JobState.DUE
    assert (job.payload, job.run_at, job.tags) == (None, None, ("a", "b"))


def test_what_a_later_version_shows_is_passed_over() -> None:
    assert read(Job, {**JOB, "colour": "red"}) == read(Job, JOB)


def test_a_schedule_that_cannot_be_read_spoils_nothing() -> None:
    assert read(Job, {**JOB, "schedule": {"moon": "full"}}).schedule == {"moon": "full"}
    assert read(Job, {**JOB, "schedule": {"every": "PT15M"}}).schedule == Every(timedelta(minutes=15))


@pytest.mark.parametrize(
    "fault",
    [{"state": "asleep"}, {"createdAt": "2026-11-29T15:00:00"}, {"createdAt": 5}, {"timeout": "1 hour"}, {"slot": "x"}],
    ids=str,
)
def test_what_is_no_job_is_refused(fault: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(Job, {**JOB, **fault})


def test_a_job_reads_back_from_what_it_is_written_as() -> None:
    job = read(Job, JOB)
    assert read(Job, document_of(job, whole=True)) == job
    assert document_of(job)["timeout"] == "P400D"  # a year has no fixed length: P1Y35D would be refused


def test_a_new_job_says_only_what_was_given() -> None:
    payload = {"nothing": None, "nested": [None, {"empty": None}]}
    assert document_of(NewJob(schedule=Every(timedelta(minutes=15)), payload=payload)) == {
        "schedule": {"every": "PT15M"},
        "payload": payload,
    }


def test_a_new_job_is_written_in_camel_case() -> None:
    job = NewJob(
        run_at=datetime(2027, 1, 31, 10, tzinfo=timezone(timedelta(hours=1))),
        on_conflict="keep",
        retry=Retry(max_attempts=3, min_backoff=timedelta(milliseconds=250)),
        overlap=Overlap.BUFFER_ONE,
        catchup_window=timedelta(days=365),
        tags=("x",),
    )
    assert document_of(job) == {
        "runAt": "2027-01-31T09:00:00Z",
        "onConflict": "keep",
        "retry": {"maxAttempts": 3, "minBackoff": "PT0.25S"},
        "overlap": "buffer_one",
        "catchupWindow": "P365D",
        "tags": ("x",),
    }


@pytest.mark.parametrize("duration", [timedelta(0), timedelta(days=365), timedelta(microseconds=1), timedelta(weeks=9)])
def test_every_duration_is_one_that_the_api_reads(duration: timedelta) -> None:
    assert parse_duration(document_of(NewJob(jitter=duration))["jitter"]) == duration


def test_an_instant_without_an_offset_is_refused() -> None:
    naive = datetime(2027, 1, 31)  # noqa: DTZ001
    with pytest.raises(ValueError, match="has no offset"):
        instant_text(naive)
    with pytest.raises(ValueError, match="has no offset"):
        document_of(NewJob(run_at=naive))
    with pytest.raises(ValueError, match="has no offset"):
        query_of(dueBefore=naive)


def test_a_skip_and_the_ring_are_read() -> None:
    skip = {"from": "2026-11-29T15:00:00Z", "to": "2026-11-29T16:00:00Z", "count": 5, "reason": "overlap"}
    assert read(Skip, skip).reason is SkipReason.OVERLAP
    assert document_of(read(Skip, skip), whole=True) == skip
    ring = {
        "items": [{"worker": "w.1", "arcs": [[0, 4094]], "lagSeconds": 0.5, "due": 1, "running": 2}],
        "slots": [{"slot": 3, "lagSeconds": 1, "due": 1}],
        "unowned": [[4095, 4095]],
        "epoch": 4,
        "takenAt": "2026-11-29T15:00:00Z",
    }
    shards = read(Shards, ring)
    assert shards.items[0].arcs == (Arc(lo=0, hi=4094),)
    assert shards.items[0].lag == timedelta(milliseconds=500)
    assert document_of(shards, whole=True)["unowned"] == ([4095, 4095],)


def test_a_run_in_progress_has_no_outcome() -> None:
    run = {
        "runId": "x.1",
        "attempt": 1,
        "scheduledFor": "2026-11-29T15:00:00Z",
        "cause": "schedule",
        "workerId": "w.1",
        "leaseGeneration": 1,
        "startedAt": "2026-11-29T15:00:00Z",
        "finishedAt": None,
        "outcome": None,
        "error": None,
        "result": {"big": 2**70},
    }
    assert read(Run, run).outcome is None
    assert read(Run, run).result == {"big": 2**70}


def test_a_patched_schedule_leaves_nothing_of_the_old_one() -> None:
    patch = merge_patch_of({"schedule": Cron("@daily"), "timeout": timedelta(seconds=5), "catchup": None})
    assert patch == {
        "schedule": {
            "cron": "@daily",
            "timezone": "UTC",
            "every": None,
            "anchor": None,
            "startAt": None,
            "endAt": None,
            "maxRuns": None,
        },
        "timeout": "PT5S",
        "catchup": None,
        "runAt": None,
    }
    assert merge_patch_of({"run_at": datetime(2027, 1, 1, tzinfo=UTC)}) == {
        "runAt": "2027-01-01T00:00:00Z",
        "schedule": None,
    }


def test_a_patched_retry_policy_is_whole() -> None:
    assert merge_patch_of({"retry": Retry(max_attempts=2)}) == {
        "retry": {"maxAttempts": 2, "minBackoff": None, "maxBackoff": None, "multiplier": None, "maxLost": None}
    }


def test_a_query_holds_what_is_given() -> None:
    assert query_of(state=JobState.DEAD, limit=5, tag=None, catchup=Catchup.ALL) == {
        "state": "dead",
        "limit": "5",
        "catchup": "all",
    }


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "a?b", "x.1.2", "x.", "é", "a b", "%2e"])
def test_what_would_change_a_path_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        id_in_path(text)


def test_ids_of_jobs_and_runs_stand_in_paths_as_they_are() -> None:
    for text in ("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e", "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e.3"):
        assert id_in_path(text) == text
