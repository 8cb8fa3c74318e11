"""What requests may say, and how every fault in them is named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ringcron.models import JobState
from ringcron_api.schemas import JOB_NAMES, CreateJob, ListJobs, Page, names_of, read


def faults_of(document: Any) -> dict[str, str]:
    _, faults = read(CreateJob, document, known=JOB_NAMES, place="body")
    return {fault.pointer: fault.code for fault in faults}


def test_the_least_that_a_job_needs() -> None:
    request, faults = read(CreateJob, {"runAt": "2027-01-31T10:00:00.5+01:00"}, known=JOB_NAMES, place="body")
    assert faults == []
    assert request is not None
    assert request.run_at == datetime(2027, 1, 31, 9, 0, 0, 500_000, UTC)
    assert (request.handler, request.on_conflict, request.payload, request.tags) == ("default", "error", None, [])
    assert (request.retry.max_attempts, request.retry.min_backoff) == (5, timedelta(seconds=5))


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("runAt", "2027-01-31T09:00:00", "invalid"),  # naive
        ("runAt", "2027-01-31T09:00:60Z", "invalid"),
        ("runAt", "2027-02-30T09:00:00Z", "invalid"),
        ("runAt", "9000-01-01T00:00:00Z", "invalid"),
        ("runAt", "1999-12-31T23:59:59Z", "invalid"),
        ("runAt", "0000-01-01T00:00:00Z", "invalid"),
        ("runAt", "10000-01-01T00:00:00Z", "invalid"),
        ("runAt", "-infinity", "invalid"),
        ("runAt", "infinity", "invalid"),
        ("runAt", 1_800_000_000, "type"),
        ("handler", "", "invalid"),
        ("handler", "a\n", "invalid"),
        ("handler", "x" * 129, "invalid"),
        ("handler", None, "type"),
        ("key", "", "out-of-range"),
        ("key", "k" * 513, "out-of-range"),
        ("key", 7, "type"),
        ("name", "", "out-of-range"),
        ("name", "n" * 257, "out-of-range"),
        ("tags", "a", "type"),
        ("tags", ["t"] * 65, "out-of-range"),
        ("retry", [], "type"),
        ("timeout", "PT0S", "out-of-range"),
        ("timeout", "P366D", "out-of-range"),
        ("timeout", "P1Y", "invalid"),
        ("timeout", "30s", "invalid"),
        ("timeout", 30, "type"),
        ("overlap", "queue", "invalid"),
        ("catchup", ["latest"], "invalid"),
        ("onConflict", "ignore", "invalid"),
        ("jitter", "PT86400.000001S", "out-of-range"),
        ("jitter", "1h", "invalid"),
        ("catchupWindow", "PT0.5S", "out-of-range"),
        ("catchupWindow", "P40000D", "invalid"),
        ("onExhausted", "stop", "invalid"),
    ],
)
def test_one_fault(member: str, value: Any, code: str) -> None:
    assert faults_of({"runAt": "2027-01-01T00:00:00Z", member: value}) == {f"/{member}": code}


@pytest.mark.parametrize(
    ("member", "value", "code"),
    [
        ("maxAttempts", 0, "out-of-range"),
        ("maxAttempts", 1001, "out-of-range"),
        ("maxAttempts", 5.5, "type"),
        ("maxAttempts", "5", "type"),
        ("maxAttempts", True, "type"),
        ("minBackoff", "P31D", "out-of-range"),
        ("multiplier", 0.5, "out-of-range"),
        ("multiplier", "2", "type"),
        ("maxLost", 0, "out-of-range"),
        ("attempts", 1, "unknown-field"),
    ],
)
def test_one_fault_in_retry(member: str, value: Any, code: str) -> None:
    assert faults_of({"retry": {member: value}}) == {f"/retry/{member}": code}


@pytest.mark.parametrize("value", [5, 5.0])
def test_a_whole_number_may_be_written_with_a_point(value: float) -> None:
    assert faults_of({"retry": {"maxAttempts": value}}) == {}


@pytest.mark.parametrize("document", [[], "x", 1, None, True])
def test_a_body_that_is_no_object(document: Any) -> None:
    assert faults_of(document) == {"": "type"}


@pytest.mark.parametrize("member", ["runAt", "schedule", "payload", "key", "name", "timeout"])
def test_null_where_an_answer_has_null(member: str) -> None:
    assert faults_of({member: None}) == {}


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ({"runat": "x"}, "did you mean runAt?"),
        ({"scheduel": "x"}, "did you mean schedule?"),
        ({"on_conflict": "keep"}, "did you mean onConflict?"),
        ({"retry": {"maxattempts": 1}}, "did you mean maxAttempts?"),
        ({"hander": "x"}, "did you mean handler?"),
        ({"cron": "@daily"}, "did you mean schedule.cron?"),
        ({"every": 3}, "did you mean schedule.every?"),
        ({"time_zone": "UTC"}, "did you mean schedule.timezone?"),
        ({"maxAttempts": 3}, "did you mean retry.maxAttempts?"),
        ({"delay": 5}, "did you mean runAt?"),
        ({"in": "PT5S"}, "did you mean runAt?"),
        ({"args": [1]}, "did you mean payload?"),
        ({"paused": True}, "known are runAt, schedule"),
        ({"zzz": 1}, "known are runAt, schedule"),
    ],
)
def test_an_unknown_field_names_the_nearest(path: dict[str, Any], advice: str) -> None:
    _, faults = read(CreateJob, path, known=JOB_NAMES, place="body")
    assert any(advice in fault.detail for fault in faults)


def test_a_query() -> None:
    text = {"limit": "500", "state": "dead", "dueBefore": "2027-01-01T00:00:00+01:00", "order": "nextRunAt"}
    query, faults = read(ListJobs, text, known={(): names_of(ListJobs)}, place="query")
    assert faults == []
    assert query is not None
    assert (query.limit, query.state, query.order) == (500, JobState.DEAD, "nextRunAt")
    assert query.due_before == datetime(2026, 12, 31, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ({"limit": "0"}, {"/limit": "out-of-range"}),
        ({"limit": "501"}, {"/limit": "out-of-range"}),
        ({"limit": "1_0"}, {"/limit": "type"}),
        ({"limit": " 1"}, {"/limit": "type"}),
        ({"limit": "9" * 5000}, {"/limit": "type"}),
        ({"Limit": "1"}, {"/Limit": "unknown-parameter"}),
    ],
)
def test_faults_in_a_query(text: dict[str, str], faults: dict[str, str]) -> None:
    _, found = read(Page, text, known={(): names_of(Page)}, place="query")
    assert {fault.pointer: fault.code for fault in found} == faults
    assert all(fault.wire()["in"] == "query" for fault in found)
