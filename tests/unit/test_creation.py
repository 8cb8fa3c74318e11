"""From a body to a job: the first tick, what is shown of the next ones, and limits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ringcron.going import jitter_of
from ringcron.models import Catchup, Job, JobState, OnExhausted, Overlap
from ringcron.slots import created_at_of
from ringcron.store.creating import NewJob
from ringcron_api.creation import next_runs, read_creation
from ringcron_api.definitions import PAYLOAD_LIMIT
from ringcron_api.faults import ValidationFailed
from ringcron_api.problems import Problem
from tests.support.values import job_of

NOW = datetime(2027, 3, 1, 12, 0, 0, tzinfo=UTC)


def new_job(body: dict[str, Any]) -> NewJob:
    return read_creation(body, [], NOW).new


def test_the_id_and_the_instants_are_fixed() -> None:
    new = new_job({"runAt": "2027-03-01T12:00:01Z"})
    assert created_at_of(new.id) == new.created_at == NOW
    assert new.next_run_at == new.scheduled_for == NOW + timedelta(seconds=1)


def test_an_instant_in_the_past() -> None:
    new = new_job({"runAt": "2027-03-01T11:59:59Z"})
    assert (new.scheduled_for, new.next_run_at) == (NOW - timedelta(seconds=1), NOW)


def test_the_first_tick_is_strictly_later_than_now() -> None:
    assert new_job({"schedule": "0 12 * * *"}).next_run_at == NOW + timedelta(days=1)
    assert new_job({"schedule": {"every": "PT1H"}}).next_run_at == NOW + timedelta(hours=1)
    started = new_job(
        {"schedule": {"every": "PT1H", "anchor": "2027-03-01T00:30:00Z", "startAt": "2027-03-02T00:30:00Z"}}
    )
    assert started.next_run_at == datetime(2027, 3, 2, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize("when", [{"schedule": "0 12 * * *"}, {"runAt": "2027-03-02T12:00:00Z"}])
def test_jitter_moves_the_run_and_not_its_name(when: dict[str, Any]) -> None:
    new = new_job({**when, "jitter": "PT24H"})
    assert new.scheduled_for == NOW + timedelta(days=1)
    assert timedelta(0) < new.next_run_at - new.scheduled_for < timedelta(hours=24)
    assert new.next_run_at == NOW + timedelta(days=1) + jitter_of(new.id.bytes, 86400)
    other = job_of().id
    assert new.next_run_at_as(other) == NOW + timedelta(days=1) + jitter_of(other.bytes, 86400)


def test_what_is_due_already_is_not_put_off() -> None:
    assert new_job({"runAt": "2027-03-01T11:59:59Z", "jitter": "PT24H"}).next_run_at == NOW


def test_every_policy_is_taken_over() -> None:
    definition = new_job(
        {
            "schedule": "0 12 * * *",
            "overlap": "buffer_all",
            "catchup": "none",
            "catchupWindow": "PT6H",
            "jitter": "PT1M",
            "onExhausted": "dead",
        }
    ).definition
    assert (definition.overlap, definition.catchup) == (Overlap.BUFFER_ALL, Catchup.NONE)
    assert (definition.catchup_window_seconds, definition.jitter_seconds) == (6 * 3600, 60)
    assert definition.on_exhausted is OnExhausted.DEAD


def test_a_recurring_job_says_which_rules_chose_its_tick() -> None:
    assert new_job({"schedule": "0 12 * * *"}).definition.tzdata
    assert new_job({"runAt": "2027-03-01T12:00:01Z"}).definition.tzdata is None


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({}, {"": "required"}),
        ({"runAt": None, "schedule": None}, {"": "required"}),
        ({"runAt": "2027-03-01T12:00:01Z", "schedule": "0 12 * * *"}, {"": "invalid"}),
        ({"schedule": 5}, {"/schedule": "type"}),
        ({"schedule": {}}, {"/schedule": "required"}),
        ({"schedule": {"every": "PT0.5S"}}, {"/schedule/every": "out-of-range"}),
        ({"runAt": "2027-03-01T12:00:01Z", "onConflict": "keep"}, {"/onConflict": "invalid"}),
    ],
)
def test_faults_between_fields(body: dict[str, Any], faults: dict[str, str]) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        new_job(body)
    assert {fault.pointer: fault.code for fault in refusal.value.faults} == faults


def test_a_payload_has_a_limit() -> None:
    new_job({"runAt": "2027-03-01T12:00:01Z", "payload": "x" * (PAYLOAD_LIMIT - 2)})
    with pytest.raises(Problem) as refusal:
        new_job({"runAt": "2027-03-01T12:00:01Z", "payload": "x" * (PAYLOAD_LIMIT - 1)})
    assert refusal.value.code == "payload-too-large"


def hourly(**columns: Any) -> Job:
    document = {"every": "PT1H", "anchor": "2027-01-01T00:00:00Z", **columns.pop("schedule", {})}
    job = job_of(**columns)
    return replace(job, definition=replace(job.definition, schedule=document, run_at=None))


def test_what_is_shown_of_the_next_ticks() -> None:
    hours = [NOW + timedelta(hours=n) for n in range(1, 11)]
    assert next_runs(hourly(), NOW) == hours
    assert next_runs(hourly(state=JobState.CLAIMED), NOW) == hours
    assert next_runs(hourly(schedule={"maxRuns": 3}, occurrences=1), NOW) == hours[:2]
    assert next_runs(hourly(schedule={"endAt": "2027-03-01T14:30:00Z"}), NOW) == hours[:2]
    late = hourly()
    late = replace(late, definition=replace(late.definition, jitter_seconds=60))
    assert next_runs(late, NOW) == [hour + jitter_of(late.id.bytes, 60) for hour in hours]
    for state in (JobState.PAUSED, JobState.DONE, JobState.CANCELLED, JobState.DEAD):
        assert next_runs(hourly(state=state), NOW) == []


def test_a_schedule_that_cannot_be_read_shows_nothing() -> None:
    assert next_runs(hourly(schedule={"every": "soon"}), NOW) == []


def test_a_one_off_shows_when_it_will_run() -> None:
    job = job_of(next_run_at=NOW)
    assert next_runs(job, NOW) == [NOW]
    assert next_runs(replace(job, state=JobState.CLAIMED), NOW) == []
