"""What a person, or new zone rules, may do to a job: the decisions that histories are too rare to meet."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

import pytest

from ringcron import changes
from ringcron.models import Catchup, Overlap, Skip, SkipReason
from ringcron.schedule import parse_schedule
from ringcron.undecided import given_up
from tests.unit.test_histories import T0, History

MINUTE = timedelta(minutes=1)


def test_new_zone_rules_leave_a_tick_that_has_come_and_waits_out_its_jitter() -> None:
    job = History(Overlap.SKIP, Catchup.LATEST).job
    job = dataclasses.replace(job, next_run_at=T0 + 5 * MINUTE)
    moved = changes.follow_zone_rules(job, T0 + MINUTE, tzdata="2099z").job
    assert (moved.scheduled_for, moved.next_run_at, moved.definition.tzdata) == (T0, T0 + 5 * MINUTE, "2099z")
    early = changes.follow_zone_rules(dataclasses.replace(job, scheduled_for=T0 + 5 * MINUTE), T0, tzdata="2099z").job
    assert early.scheduled_for == T0 + MINUTE, "one that has not come moves"


HELD = [T0 + n * MINUTE for n in range(8)]


@pytest.mark.parametrize(
    ("waiting", "since", "told"),
    [
        ([], HELD[3], []),
        ([0, 1, 2, 3], HELD[3], [(0, 3)]),
        ([0], HELD[3], [(0, 0)]),
        ([1, 2, 5], HELD[6], [(1, 2), (5, 5), (7, 7)]),
        ([4, 5, 6], HELD[6], [(4, 7)]),
        ([], HELD[5], [(6, 7)]),
    ],
)
def test_what_a_schedule_leaves_behind_is_told_once(
    waiting: list[int], since: datetime, told: list[tuple[int, int]]
) -> None:
    """Between the ticks that waited lie those that a skip `overlap` has told already."""
    ticks = parse_schedule({"every": "PT60S", "anchor": "2026-12-01T09:00:00Z"})
    now = HELD[7] if told and told[-1][1] == 7 else since
    skips = given_up(ticks, [HELD[n] for n in waiting], since, now, SkipReason.RESCHEDULED)
    assert skips == tuple(
        Skip(first=HELD[a], last=HELD[b], count=b - a + 1, reason=SkipReason.RESCHEDULED) for a, b in told
    )


def test_ticks_that_waited_are_not_told_as_what_passed_during_a_pause() -> None:
    ticks = parse_schedule({"every": "PT60S", "anchor": "2026-12-01T09:00:00Z"})
    skips = given_up(ticks, HELD[:2], HELD[1], HELD[3], SkipReason.PAUSED)
    assert [(skip.reason, skip.count) for skip in skips] == [(SkipReason.RESCHEDULED, 2), (SkipReason.PAUSED, 2)]
