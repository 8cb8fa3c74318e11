"""What creates with one key come to."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ringcron.errors import JobAlreadyClaimed, KeyExists
from ringcron.models import Cause, Definition, JobState
from ringcron.slots import new_job_id
from ringcron.store.creating import Created, Creation, OnConflict, Outcome, Stored
from ringcron.store.keyed import Holder, decide, replacing_at
from ringcron_sql import query

NOW = datetime(2027, 3, 1, 12, 0, 0, tzinfo=UTC)
ERROR, KEEP, REPLACE = OnConflict.ERROR, OnConflict.KEEP, OnConflict.REPLACE


def creates(*kinds: OnConflict) -> list[Creation]:
    """Creates of one key, the n-th due n days from now."""
    made = []
    for n, on_conflict in enumerate(kinds, 1):
        due = NOW + timedelta(days=n)
        common = Definition(handler="log", payload=n, run_at=due, key="k", jitter_seconds=3600.0)
        made.append(Creation(new_job_id(NOW), common, due, "k", n, NOW, due, on_conflict))
    return made


def holder(state: JobState, *, claimed: bool = False) -> Holder:
    return Holder(
        id=new_job_id(NOW),
        state=state,
        next_run_at=NOW,
        schedule=None,
        scheduled_for=NOW,
        cause=Cause.SCHEDULE,
        attempt=0,
        kept=(),
        decided_until=NOW,
        updated_at=NOW,
        claimed=claimed,
        lease_owner="w.1" if claimed else None,
        lease_until=NOW if claimed else None,
        lease_generation=3,
        read_at=NOW,
    )


def kinds(outcomes: list[Outcome]) -> list[Any]:
    return [outcome.what if isinstance(outcome, Stored) else type(outcome) for outcome in outcomes]


@pytest.mark.parametrize("first", OnConflict)
def test_a_free_key_is_taken_by_the_first_create_and_the_last_replacement_is_what_is_stored(first: OnConflict) -> None:
    lines = creates(first, ERROR, KEEP, REPLACE, KEEP, REPLACE, ERROR)
    outcomes, new, replacing = decide(lines, None)
    what = [Created.CREATED, KeyExists, Created.KEPT, Created.REPLACED, Created.KEPT, Created.REPLACED, KeyExists]
    assert kinds(outcomes) == what
    assert {outcome.job_id for outcome in outcomes if isinstance(outcome, Stored | KeyExists)} == {lines[0].id}
    assert replacing is None
    assert new == lines[5]._replace(id=lines[0].id)
    # The jitter of each is that of the one job.
    shown = [outcome.next_run_at for outcome in outcomes if isinstance(outcome, Stored)]
    due = [line._replace(id=lines[0].id).next_run_at for line in lines]
    assert shown == [due[0], due[0], due[3], due[3], due[5]]


def test_a_held_key_stays_with_its_job() -> None:
    held = holder(JobState.DUE)
    lines = creates(ERROR, KEEP, REPLACE, KEEP)
    outcomes, new, replacing = decide(lines, held)
    assert kinds(outcomes) == [KeyExists, Created.KEPT, Created.REPLACED, Created.KEPT]
    assert {outcome.job_id for outcome in outcomes if isinstance(outcome, Stored | KeyExists)} == {held.id}
    assert (new, replacing) == (None, lines[2]._replace(id=held.id))
    assert next(outcome.next_run_at for outcome in outcomes if isinstance(outcome, Stored)) == held.next_run_at
    assert decide(creates(ERROR, KEEP), held)[1:] == (None, None)


def test_a_claimed_job_is_kept_and_not_replaced() -> None:
    outcomes, new, replacing = decide(creates(REPLACE, KEEP, REPLACE), holder(JobState.CLAIMED, claimed=True))
    assert kinds(outcomes) == [JobAlreadyClaimed, Created.KEPT, JobAlreadyClaimed]
    assert (new, replacing) == (None, None)


@pytest.mark.parametrize("state", [JobState.DONE, JobState.PAUSED, JobState.DEAD])
def test_a_kept_job_without_a_next_run_shows_none(state: JobState) -> None:
    (kept,), *_ = decide(creates(KEEP), holder(state))
    assert isinstance(kept, Stored)
    assert kept.next_run_at is None


def test_a_replacement_is_decided_at_the_clock_under_the_lock() -> None:
    later = NOW + timedelta(minutes=10)
    common = Definition(handler="log", payload=1, schedule={"every": "PT1M", "anchor": "2020-01-01T00:00:00Z"}, key="k")
    ended = dataclasses.replace(common, schedule={**common.schedule, "endAt": "2027-03-01T12:05:00Z"})  # type: ignore[dict-item]
    asked = Creation(new_job_id(NOW), common, None, "k", 1, NOW, NOW + timedelta(minutes=1), REPLACE)
    past = asked._replace(common=dataclasses.replace(common, schedule=None), run_at=NOW, scheduled_for=NOW)
    kept = asked._replace(on_conflict=KEEP)
    moved = replacing_at([asked, kept, past, asked._replace(common=ended)], later, {})
    assert [one.scheduled_for - NOW for one in moved] == [timedelta(minutes=n) for n in (11, 1, 0, 1)]
    assert [one.next_run_at for one in moved] == [later + timedelta(minutes=1), kept.next_run_at, later, later]
    assert [one.new.now for one in moved] == [later, NOW, later, later]


def test_every_way_to_store_a_job_stores_every_column() -> None:
    inserted, copied = (
        set(re.findall(r"\w+", re.search(r"jobs \((.*?)\)", query(name), re.DOTALL)[1]))  # type: ignore[index]
        for name in ("insert_jobs", "copy_jobs")
    )
    assert inserted == copied
    setting = query("replace_jobs").partition("set state")[2].partition("from held")[0]
    replaced = {"state", *re.findall(r"(\w+) = ", setting)}
    assert inserted - replaced == {"id", "slot", "key", "created_at"}
