"""What a person, or new zone rules, may do to a job: the decisions that histories are too rare to meet."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from ringcron import changes
from ringcron.models import Catchup, Overlap
from tests.unit.test_histories import T0, History

MINUTE = timedelta(minutes=1)


def test_new_zone_rules_leave_a_tick_that_has_come_and_waits_out_its_jitter() -> None:
    job = History(Overlap.SKIP, Catchup.LATEST).job
    job = dataclasses.replace(job, next_run_at=T0 + 5 * MINUTE)
    moved = changes.follow_zone_rules(job, T0 + MINUTE, tzdata="2099z").job
    assert (moved.scheduled_for, moved.next_run_at, moved.definition.tzdata) == (T0, T0 + 5 * MINUTE, "2099z")
    early = changes.follow_zone_rules(dataclasses.replace(job, scheduled_for=T0 + 5 * MINUTE), T0, tzdata="2099z").job
    assert early.scheduled_for == T0 + MINUTE, "one that has not come moves"
