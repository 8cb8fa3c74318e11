"""Alerts for one job: when a breach begins, when it is looked at again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.alerts import BREACHED_LOOK, LONGEST_LOOK, AlertKind, Judgement, Watched, judge, sentence
from ringcron.models import JobState

NOW = datetime(2027, 3, 1, 9, tzinfo=UTC)
ID = UUID("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e")


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def look(**facts: Any) -> Judgement:
    found: dict[str, Any] = {
        "job_id": ID,
        "now": NOW,
        "state": JobState.DUE,
        "after_late_seconds": None,
        "if_no_success_seconds": None,
        "since": NOW - seconds(1000),
        "next_run_at": NOW + seconds(3600),
    }
    return judge(Watched(**(found | facts)))


def test_late_begins_where_the_promise_ends() -> None:
    found = look(after_late_seconds=60, next_run_at=NOW - seconds(90))
    assert found.late_since == NOW - seconds(30)
    assert found.look_at == NOW + BREACHED_LOOK


def test_due_but_not_late_yet_is_looked_at_when_it_would_be() -> None:
    found = look(after_late_seconds=60, next_run_at=NOW - seconds(20))
    assert (found.late_since, found.look_at) == (None, NOW + seconds(40))


def test_what_runs_is_not_late_and_what_nobody_holds_any_more_is() -> None:
    held = {"state": JobState.CLAIMED, "after_late_seconds": 60, "next_run_at": NOW - seconds(500)}
    assert look(**held, lease_until=NOW + seconds(10)).late_since is None
    assert look(**held, lease_until=NOW - seconds(100)).late_since == NOW - seconds(40)


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.DEAD])
def test_a_forgotten_pause_breaches(state: JobState) -> None:
    found = look(state=state, if_no_success_seconds=900, after_late_seconds=1, next_run_at=NOW + timedelta(days=9000))
    assert (found.no_success_since, found.late_since) == (NOW - seconds(100), None)


def test_a_success_ends_the_breach_and_counts_from_then() -> None:
    found = look(if_no_success_seconds=900, last_success=NOW - seconds(10))
    assert (found.no_success_since, found.since) == (None, NOW - seconds(10))


@pytest.mark.parametrize("state", [None, JobState.DONE, JobState.CANCELLED])
def test_what_has_ended_is_over(state: JobState | None) -> None:
    assert look(state=state, if_no_success_seconds=1).over
    assert look().over  # the alert was taken away


@given(
    late=st.none() | st.integers(1, 10_000),
    success=st.none() | st.integers(1, 10_000),
    due=st.integers(-20_000, 20_000),
    since=st.integers(-20_000, 0),
)
def test_no_breach_is_looked_at_too_late(late: int | None, success: int | None, due: int, since: int) -> None:
    """Nothing becomes wrong between two looks and stays unseen for longer than a second."""
    facts = {
        "after_late_seconds": late,
        "if_no_success_seconds": success,
        "next_run_at": NOW + seconds(due),
        "since": NOW + seconds(since),
    }
    found = look(**facts)
    if found.over:
        return
    assert NOW < found.look_at <= NOW + LONGEST_LOOK
    before = found.look_at - seconds(1)
    if before > NOW:
        then = look(**facts, now=before)
        assert (then.late_since, then.no_success_since) == (found.late_since, found.no_success_since)


def test_sentences() -> None:
    said = sentence(AlertKind.LATE, job="billing", began=NOW, limit_seconds=60, state=JobState.DUE)
    assert said == "billing has not started 60 s after it was due; it is due"
    assert "no longer late" in sentence(AlertKind.LATE, job="billing", began=None, limit_seconds=60, state=None)
