"""What becomes of a job after a claim and after a run: contract.md §5, row by row, and a reference model."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcron.errors import ScheduleError
from ringcron.going import Going, jitter_of
from ringcron.lifecycle import after_run, backoff_seconds
from ringcron.models import (
    Catchup,
    Cause,
    Claim,
    Definition,
    JobState,
    OnExhausted,
    Overlap,
    RetryPolicy,
    RunOutcome,
    Skip,
    SkipReason,
)
from ringcron.policies import NONE_TOLERANCE, next_cancelling_tick, settle
from ringcron.schedule import parse_schedule

T0 = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVERY_MINUTE = {"every": "PT1M", "anchor": "2026-12-01T09:00:00Z"}


def make_going(
    *,
    recurring: bool = True,
    scheduled_for: datetime = T0,
    claimed_at: datetime | None = None,
    attempt: int = 1,
    cause: Cause = Cause.SCHEDULE,
    kept: tuple[datetime, ...] = (),
    occurrences: int = 1,
    triggered: bool = False,
    run_at: datetime | None = None,
    document: dict[str, object] | None = None,
    **policies: object,
) -> Going:
    now = claimed_at or scheduled_for
    schedule = (document or EVERY_MINUTE) if recurring else None
    definition = Definition(
        handler="h",
        payload=None,
        schedule=schedule,
        run_at=None if recurring else (run_at or scheduled_for),
        **policies,  # type: ignore[arg-type]
    )
    claim = Claim(
        id=UUID(int=1),
        next_run_at=scheduled_for,
        lease_generation=1,
        handler="h",
        attempt=attempt,
        scheduled_for=scheduled_for,
        cause=cause,
        claimed_at=now,
        decided_until=now,
        lost=0,
    )
    return Going(
        claim=claim,
        definition=definition,
        ticks=None if schedule is None else parse_schedule(schedule),
        occurrences=occurrences,
        kept=kept,
        after_current={"trigger": True} if triggered else {},
    )


def test_jitter_makes_no_tick_missed_under_none() -> None:
    """A job that runs long after its tick by its own jitter is not late."""
    window = 45 * 60.0
    offset = jitter_of(UUID(int=1).bytes, window)
    assert offset > 2 * NONE_TOLERANCE
    hourly = make_going(
        document={"every": "PT1H", "anchor": "2026-12-01T09:00:00Z"}, claimed_at=T0 + offset, catchup=Catchup.NONE
    )
    on_time = dataclasses.replace(hourly, definition=dataclasses.replace(hourly.definition, jitter_seconds=window))
    assert settle(on_time) is None
    assert settle(hourly) is not None


def test_a_one_off_that_succeeded_is_done() -> None:
    done = after_run(make_going(recurring=False), RunOutcome.SUCCEEDED, now=T0 + MINUTE, random=0)
    assert done.state is JobState.DONE


def test_a_recurring_job_goes_on_at_its_next_tick_whatever_the_run_took() -> None:
    after = after_run(make_going(), RunOutcome.SUCCEEDED, now=T0 + timedelta(seconds=59), random=0)
    assert (after.state, after.scheduled_for, after.next_run_at) == (JobState.DUE, T0 + MINUTE, T0 + MINUTE)
    assert (after.attempt, after.cause, after.skip) == (0, Cause.SCHEDULE, None)


def test_ticks_that_pass_while_it_runs_are_one_skip() -> None:
    """S36, A43: a handler of 150 s on a minute schedule runs every third minute, two skipped between."""
    after = after_run(make_going(), RunOutcome.SUCCEEDED, now=T0 + timedelta(seconds=150), random=0)
    assert after.scheduled_for == T0 + 3 * MINUTE
    assert after.skip == Skip(first=T0 + MINUTE, last=T0 + 2 * MINUTE, count=2, reason=SkipReason.OVERLAP)


@pytest.mark.parametrize("outcome", [RunOutcome.FAILED, RunOutcome.TIMED_OUT])
def test_attempts_left_mean_a_retry_of_the_same_occurrence(outcome: RunOutcome) -> None:
    after = after_run(make_going(attempt=2), outcome, now=T0 + 10 * MINUTE, random=1.0, error="boom")
    assert (after.state, after.attempt, after.scheduled_for) == (JobState.DUE, 2, T0)
    assert after.delay_seconds == 10.0
    assert after.skip is None


def test_an_occurrence_goes_on_past_the_end_of_its_schedule_and_past_its_next_tick() -> None:
    going = make_going(document={**EVERY_MINUTE, "endAt": "2026-12-01T09:00:00Z"}, attempt=2)
    after = after_run(going, RunOutcome.FAILED, now=T0 + 10 * MINUTE, random=1.0)
    assert (after.state, after.attempt, after.scheduled_for, after.skip) == (JobState.DUE, 2, T0, None)
    assert after_run(going, RunOutcome.SUCCEEDED, now=T0 + 10 * MINUTE, random=1.0).state is JobState.DONE


def test_retry_after_of_a_target_moves_the_back_off() -> None:
    after = after_run(make_going(), RunOutcome.FAILED, now=T0, random=0, retry_after_seconds=77)
    assert after.delay_seconds == 77


def test_an_exhausted_one_off_is_dead_with_its_error() -> None:
    after = after_run(make_going(recurring=False, attempt=5), RunOutcome.FAILED, now=T0, random=0, error="boom")
    assert after.state is JobState.DEAD
    assert after.dead_reason == "failed at attempt 5 of 5: boom"


def test_an_exhausted_recurring_job_continues_or_dies_as_told() -> None:
    goes_on = after_run(make_going(attempt=5), RunOutcome.FAILED, now=T0, random=0, error="boom")
    assert (goes_on.state, goes_on.scheduled_for) == (JobState.DUE, T0 + MINUTE)
    dies = after_run(make_going(attempt=5, on_exhausted=OnExhausted.DEAD), RunOutcome.FAILED, now=T0, random=0)
    assert dies.state is JobState.DEAD


def test_a_handler_may_say_that_trying_again_cannot_help() -> None:
    after = after_run(make_going(), RunOutcome.FAILED, now=T0, random=0, error="410 Gone", dead=True)
    assert (after.state, after.dead_reason) == (JobState.DEAD, "410 Gone")


def test_an_interrupted_run_spends_nothing() -> None:
    after = after_run(make_going(attempt=1), RunOutcome.INTERRUPTED, now=T0 + MINUTE, random=0)
    assert (after.state, after.attempt, after.delay_seconds, after.scheduled_for) == (JobState.DUE, 0, 0.0, T0)
    assert after.give_back
    assert not after_run(make_going(attempt=2), RunOutcome.INTERRUPTED, now=T0, random=0).give_back


def test_a_cancelled_run_ends_a_one_off_and_not_a_recurring_job() -> None:
    assert after_run(make_going(recurring=False), RunOutcome.CANCELLED, now=T0, random=0).state is JobState.CANCELLED
    assert after_run(make_going(), RunOutcome.CANCELLED, now=T0, random=0).state is JobState.DUE


def test_max_runs_ends_the_schedule() -> None:
    document = {**EVERY_MINUTE, "maxRuns": 3}
    assert (
        after_run(make_going(document=document, occurrences=3), RunOutcome.SUCCEEDED, now=T0, random=0).state == "done"
    )
    assert (
        after_run(make_going(document=document, occurrences=2), RunOutcome.SUCCEEDED, now=T0, random=0).state == "due"
    )


def test_the_end_of_the_schedule_ends_the_job() -> None:
    document = {**EVERY_MINUTE, "endAt": "2026-12-01T09:00:30Z"}
    assert after_run(make_going(document=document), RunOutcome.SUCCEEDED, now=T0, random=0).state is JobState.DONE


def test_a_trigger_that_waits_runs_once_afterwards() -> None:
    now = T0 + timedelta(seconds=10)
    after = after_run(make_going(triggered=True), RunOutcome.SUCCEEDED, now=now, random=0)
    assert (after.state, after.cause, after.scheduled_for, after.next_run_at) == ("due", Cause.MANUAL, now, now)
    following = make_going(cause=Cause.MANUAL, scheduled_for=now)
    assert after_run(following, RunOutcome.SUCCEEDED, now=now, random=0).scheduled_for == T0 + MINUTE


def test_a_one_off_triggered_early_still_runs_at_its_instant() -> None:
    run_at = T0 + timedelta(hours=1)
    early = make_going(recurring=False, cause=Cause.MANUAL, scheduled_for=T0, run_at=run_at)
    after = after_run(early, RunOutcome.SUCCEEDED, now=T0 + MINUTE, random=0)
    assert (after.state, after.scheduled_for, after.cause) == (JobState.DUE, run_at, Cause.SCHEDULE)


def test_a_one_off_triggered_early_that_died_and_was_redriven_still_runs_at_its_instant() -> None:
    run_at = T0 + timedelta(hours=1)
    early = make_going(recurring=False, cause=Cause.REDRIVE, scheduled_for=T0, run_at=run_at)
    after = after_run(early, RunOutcome.SUCCEEDED, now=T0 + MINUTE, random=0)
    assert (after.state, after.scheduled_for, after.cause) == (JobState.DUE, run_at, Cause.SCHEDULE)
    at_its_instant = make_going(recurring=False, cause=Cause.REDRIVE, scheduled_for=T0, claimed_at=T0 + MINUTE)
    assert after_run(at_its_instant, RunOutcome.SUCCEEDED, now=T0 + MINUTE, random=0).state is JobState.DONE


def test_a_trigger_under_a_run_of_a_one_off_before_its_instant_does_not_wait_for_it() -> None:
    run_at, now = T0 + timedelta(hours=1), T0 + MINUTE
    early = make_going(recurring=False, cause=Cause.MANUAL, scheduled_for=T0, run_at=run_at, triggered=True)
    after = after_run(early, RunOutcome.SUCCEEDED, now=now, random=0)
    assert (after.state, after.cause, after.next_run_at) == (JobState.DUE, Cause.MANUAL, now)
    assert after.decided_until == early.claim.decided_until, "or its instant, if it comes meanwhile, was run already"


def test_a_late_occurrence_is_run_and_not_missed() -> None:
    """A41: however late a daily job is claimed, it is missed only once a later tick has passed as well."""
    daily = {"every": "P1D", "anchor": "2026-12-01T09:00:00Z"}
    assert settle(make_going(document=daily, claimed_at=T0 + timedelta(hours=23))) is None
    assert settle(make_going(claimed_at=T0 + timedelta(seconds=59))) is None


def test_of_missed_ticks_the_newest_is_run_and_one_skip_tells_the_rest() -> None:
    """A27: three hours without workers on a minute schedule."""
    settlement = settle(make_going(claimed_at=T0 + timedelta(hours=3, seconds=5)))
    assert settlement is not None
    assert (settlement.release, settlement.scheduled_for, settlement.cause) == (
        False,
        T0 + timedelta(hours=3),
        Cause.CATCHUP,
    )
    assert settlement.skip == Skip(first=T0, last=T0 + 179 * MINUTE, count=180, reason=SkipReason.MISSED)


def test_catchup_all_keeps_the_newest_hundred_in_order() -> None:
    settlement = settle(make_going(claimed_at=T0 + timedelta(hours=3), catchup=Catchup.ALL))
    assert settlement is not None
    assert settlement.scheduled_for == T0 + 81 * MINUTE
    assert settlement.kept == tuple(T0 + n * MINUTE for n in range(82, 181))
    assert settlement.skip == Skip(first=T0, last=T0 + 80 * MINUTE, count=81, reason=SkipReason.MISSED)


def test_catchup_none_runs_what_is_a_minute_old_and_releases_the_rest() -> None:
    hourly = {"every": "PT1H", "anchor": "2026-12-01T09:00:00Z"}
    fresh = make_going(document=hourly, claimed_at=T0 + timedelta(seconds=60), catchup=Catchup.NONE)
    assert settle(fresh) is None
    old = settle(make_going(document=hourly, claimed_at=T0 + timedelta(seconds=61), catchup=Catchup.NONE))
    assert old is not None
    assert (old.release, old.next_run_at, old.scheduled_for) == (True, T0 + timedelta(hours=1), T0 + timedelta(hours=1))
    assert old.skip == Skip(first=T0, last=T0, count=1, reason=SkipReason.MISSED)


def test_a_tick_beyond_the_catchup_window_is_missed() -> None:
    daily = {"every": "P1D", "anchor": "2026-12-01T09:00:00Z"}
    settlement = settle(make_going(document=daily, claimed_at=T0 + timedelta(hours=5), catchup_window_seconds=3600))
    assert settlement is not None
    assert settlement.release


def test_a_retry_asks_again_only_where_the_first_attempt_never_settled() -> None:
    late = T0 + timedelta(seconds=150)
    assert settle(make_going(attempt=2, claimed_at=late)) is not None  # its first attempt died before it could settle
    assert settle(make_going(attempt=2, claimed_at=late, cause=Cause.CATCHUP, scheduled_for=T0 + 2 * MINUTE)) is None
    assert settle(make_going(attempt=2, claimed_at=T0 + timedelta(seconds=30))) is None


@pytest.mark.parametrize("catchup", Catchup)
def test_ticks_beyond_the_window_whose_first_attempt_never_settled_leave_one_to_run(catchup: Catchup) -> None:
    daily = {"every": "P1D", "anchor": "2026-12-01T09:00:00Z"}
    day = timedelta(days=1)
    late = T0 + 3 * day + timedelta(hours=5)
    again = make_going(document=daily, claimed_at=late, attempt=2, catchup=catchup, catchup_window_seconds=3600)
    settlement = settle(again)
    assert settlement is not None
    assert (settlement.release, settlement.scheduled_for, settlement.kept) == (False, T0 + 3 * day, ())
    assert settlement.skip == Skip(first=T0 + day, last=T0 + 2 * day, count=2, reason=SkipReason.MISSED)


def test_one_offs_are_never_missed() -> None:
    assert settle(make_going(recurring=False, claimed_at=T0 + timedelta(days=900))) is None


def test_buffer_policies_keep_ticks_for_later() -> None:
    now = T0 + timedelta(seconds=200)
    one = after_run(make_going(overlap=Overlap.BUFFER_ONE), RunOutcome.SUCCEEDED, now=now, random=0)
    assert (one.scheduled_for, one.cause, one.kept) == (T0 + MINUTE, Cause.BUFFER, ())
    assert one.skip == Skip(first=T0 + 2 * MINUTE, last=T0 + 3 * MINUTE, count=2, reason=SkipReason.OVERLAP)
    every = after_run(make_going(overlap=Overlap.BUFFER_ALL), RunOutcome.SUCCEEDED, now=now, random=0)
    assert (every.scheduled_for, every.kept) == (T0 + MINUTE, (T0 + 2 * MINUTE, T0 + 3 * MINUTE))
    assert every.skip is None
    other = after_run(make_going(overlap=Overlap.CANCEL_OTHER), RunOutcome.CANCELLED, now=now, random=0)
    assert (other.scheduled_for, other.kept) == (T0 + 3 * MINUTE, ())
    assert other.skip == Skip(first=T0 + MINUTE, last=T0 + 2 * MINUTE, count=2, reason=SkipReason.OVERLAP)


def test_cancel_other_drops_a_back_off_at_the_tick() -> None:
    failed = after_run(
        make_going(overlap=Overlap.CANCEL_OTHER), RunOutcome.FAILED, now=T0 + timedelta(seconds=58), random=1
    )
    assert (failed.state, failed.attempt, failed.delay_seconds) == (JobState.DUE, 1, 2.0)
    again = make_going(overlap=Overlap.CANCEL_OTHER, attempt=2)
    claim = dataclasses.replace(again.claim, claimed_at=T0 + MINUTE)
    settlement = settle(dataclasses.replace(again, claim=claim))
    assert settlement is not None
    assert (settlement.restart, settlement.scheduled_for, settlement.skip) == (True, T0 + MINUTE, None)


def test_what_waits_for_the_run_takes_effect_at_its_end() -> None:
    now = T0 + timedelta(seconds=10)

    def ends(outcome: RunOutcome, **waiting: object) -> tuple[JobState, datetime, int]:
        after = after_run(dataclasses.replace(make_going(), after_current=waiting), outcome, now=now, random=0)
        return after.state, after.scheduled_for, after.attempt

    pause = {"reason": "lunch", "by": "me"}
    assert ends(RunOutcome.SUCCEEDED, pause=pause) == (JobState.PAUSED, T0 + MINUTE, 0)
    assert ends(RunOutcome.FAILED, pause=pause) == (JobState.PAUSED, T0, 1)
    assert ends(RunOutcome.FAILED, cancel=True) == (JobState.CANCELLED, T0, 1)
    assert ends(RunOutcome.INTERRUPTED, cancel=True) == (JobState.CANCELLED, T0, 1)
    hourly = {"ticks": parse_schedule({"every": "PT1H", "anchor": "2026-12-01T00:00:00Z"}), "run_at": None}
    assert ends(RunOutcome.FAILED, patch=hourly) == (JobState.DUE, T0 + timedelta(hours=1), 0)
    one_off = {"ticks": None, "run_at": T0 + timedelta(days=1)}
    assert ends(RunOutcome.SUCCEEDED, patch=one_off) == (JobState.DUE, T0 + timedelta(days=1), 0)
    assert ends(RunOutcome.SUCCEEDED, patch=one_off, trigger=True) == (JobState.DUE, now, 0)
    passed = {"ticks": None, "run_at": T0}
    assert ends(RunOutcome.SUCCEEDED, patch=passed, trigger=True) == (JobState.DUE, T0, 0)


def test_a_patch_that_waited_for_the_run_tells_the_ticks_that_waited_their_turn() -> None:
    kept = tuple(T0 + n * MINUTE for n in (1, 2))
    hourly = {"ticks": parse_schedule({"every": "PT1H", "anchor": "2026-12-01T00:00:00Z"}), "run_at": None}
    going = dataclasses.replace(make_going(kept=kept, cause=Cause.CATCHUP), after_current={"patch": hourly})
    claim = dataclasses.replace(going.claim, decided_until=T0 + 2 * MINUTE)
    after = after_run(dataclasses.replace(going, claim=claim), RunOutcome.SUCCEEDED, now=T0 + 4 * MINUTE, random=0)
    assert (after.scheduled_for, after.kept) == (T0 + timedelta(hours=1), ())
    assert after.skips == (Skip(first=T0 + MINUTE, last=T0 + 4 * MINUTE, count=4, reason=SkipReason.RESCHEDULED),)


def test_a_run_that_was_handed_back_is_not_missed() -> None:
    """It had begun: whatever the policy, and however late the next claim comes, the same occurrence runs again."""
    for catchup in Catchup:
        begun = make_going(catchup=catchup, catchup_window_seconds=2)
        back = after_run(begun, RunOutcome.INTERRUPTED, now=T0 + timedelta(seconds=50), random=0)
        again = make_going(
            catchup=catchup, catchup_window_seconds=2, cause=back.cause, claimed_at=T0 + timedelta(hours=2)
        )
        assert settle(again) is None


def test_ticks_missed_before_a_first_attempt_that_never_settled_are_not_forgotten_under_cancel_other() -> None:
    late = T0 + timedelta(seconds=200)
    settlement = settle(make_going(attempt=2, claimed_at=late, overlap=Overlap.CANCEL_OTHER))
    assert settlement is not None
    assert not settlement.restart
    assert settlement.scheduled_for == T0 + 3 * MINUTE
    # Its own tick is told by the run row of the attempt that was lost.
    assert settlement.skip == Skip(first=T0 + MINUTE, last=T0 + 2 * MINUTE, count=2, reason=SkipReason.MISSED)


def test_cancel_other_leaves_the_last_run_that_max_runs_allows_alone() -> None:
    last = make_going(overlap=Overlap.CANCEL_OTHER, document={**EVERY_MINUTE, "maxRuns": 1}, occurrences=1, attempt=2)
    assert next_cancelling_tick(last) is None
    passed = dataclasses.replace(last.claim, claimed_at=T0 + 3 * MINUTE)
    assert settle(dataclasses.replace(last, claim=passed)) is None


@pytest.mark.parametrize("outcome", [RunOutcome.FAILED, RunOutcome.INTERRUPTED])
def test_wishes_that_have_not_taken_effect_go_on_waiting(outcome: RunOutcome) -> None:
    hourly = {"every": "PT1H", "anchor": "2026-12-01T00:00:00Z"}
    waiting = {"trigger": True, "patch": {"schedule": hourly, "runAt": None, "tzdata": None}}
    decoded = {"trigger": True, "patch": {"ticks": parse_schedule(hourly), "run_at": None}}
    going = dataclasses.replace(make_going(), after_current=decoded, waiting=waiting)
    after = after_run(going, outcome, now=T0 + timedelta(seconds=10), random=0)
    assert "trigger" in going.waiting
    left = set() if outcome is RunOutcome.FAILED else {"trigger", "patch"}
    assert set(after.after_current or ()) == left
    alone = dataclasses.replace(make_going(), after_current={"trigger": True}, waiting={"trigger": True})
    assert after_run(alone, RunOutcome.SUCCEEDED, now=T0, random=0).after_current is None
    retried = after_run(alone, RunOutcome.FAILED, now=T0, random=0)
    assert retried.after_current == {"trigger": True}


def test_a_schedule_that_cannot_go_on_kills_its_job_only() -> None:
    class Broken:
        max_runs = None

        def next_after(self, after: datetime) -> datetime | None:
            raise ScheduleError("no zone of that name")

        def latest(self, after: datetime, until: datetime) -> datetime | None:
            return None

        def count(self, after: datetime, until: datetime) -> int:
            return 0

        def upcoming(self, after: datetime, n: int) -> list[datetime]:
            return []

    after = after_run(dataclasses.replace(make_going(), ticks=Broken()), RunOutcome.SUCCEEDED, now=T0, random=0)
    assert after.state is JobState.DEAD
    assert "no zone of that name" in str(after.dead_reason)


@given(attempt=st.integers(1, 10_000), random=st.floats(0, 1, exclude_max=True))
def test_back_off_stays_within_its_bounds(attempt: int, random: float) -> None:
    definition = Definition(handler="h", payload=None, retry=RetryPolicy(min_backoff_seconds=5, max_backoff_seconds=60))
    assert 2.5 <= backoff_seconds(definition, attempt, random) <= 60


@given(window=st.floats(0, 86400), number=st.integers(0, 2**128 - 1))
def test_jitter_is_fixed_for_a_job_and_within_its_window(window: float, number: int) -> None:
    offset = jitter_of(UUID(int=number).bytes, window)
    assert offset == jitter_of(UUID(int=number).bytes, window)
    assert timedelta(0) <= offset <= timedelta(seconds=window)


@given(
    overlap=st.sampled_from(list(Overlap)),
    catchup=st.sampled_from(list(Catchup)),
    window=st.sampled_from([90.0, 400.0, 86400.0]),
    interval=st.integers(1, 200),
    steps=st.lists(
        st.tuples(
            st.floats(0, 900),  # how late the claim comes
            st.floats(0, 900),  # how long the attempt takes
            st.sampled_from(["succeeded", "failed", "interrupted", "cancelled"]),
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_every_tick_is_run_or_in_exactly_one_skip(
    overlap: Overlap, catchup: Catchup, window: float, interval: int, steps: list[tuple[float, float, str]]
) -> None:
    """A model of the row: claims as claim.sql makes them, decisions from here, and a ledger of every tick's fate."""
    step = timedelta(seconds=interval)
    document = {"every": f"PT{interval}S", "anchor": "2026-12-01T09:00:00Z"}
    ticks = parse_schedule(document)
    definition = Definition(
        handler="h",
        payload=None,
        schedule=document,
        overlap=overlap,
        catchup=catchup,
        catchup_window_seconds=window,
        retry=RetryPolicy(max_attempts=2),
    )
    decided, scheduled_for, next_run_at = T0 - timedelta(seconds=1), T0, T0
    cause, attempt, occurrences = Cause.SCHEDULE, 0, 0
    kept: tuple[datetime, ...] = ()
    now = T0
    fate: dict[datetime, str] = {}

    def record_skip(skip: Skip | None) -> None:
        if skip is None:
            return
        found = ticks.upcoming(skip.first - timedelta(microseconds=1), skip.count)
        assert (found[0], found[-1], len(found)) == (skip.first, skip.last, skip.count)
        for tick in found:
            assert tick not in fate, (tick, fate)
            fate[tick] = skip.reason

    for late, taken, outcome in steps:
        now = max(now, next_run_at) + timedelta(seconds=late)
        if attempt == 0 and cause is Cause.SCHEDULE:
            decided = max(decided, now)
        occurrences += attempt == 0
        attempt += 1
        claim = Claim(
            id=UUID(int=7),
            next_run_at=next_run_at,
            lease_generation=1,
            handler="h",
            attempt=attempt,
            scheduled_for=scheduled_for,
            cause=cause,
            claimed_at=now,
            decided_until=decided,
            lost=0,
        )
        going = Going(claim=claim, definition=definition, ticks=ticks, occurrences=occurrences, kept=kept)
        settlement = settle(going)
        if settlement is not None:
            record_skip(settlement.skip)
            if settlement.restart:
                assert fate.setdefault(scheduled_for, "run") == "run"
                attempt, decided, occurrences = 1, now, occurrences + 1
            scheduled_for, cause, kept = settlement.scheduled_for, settlement.cause, settlement.kept
            if settlement.release:
                assert settlement.next_run_at is not None
                next_run_at, attempt = settlement.next_run_at, 0
                continue
            claim = dataclasses.replace(
                claim, scheduled_for=scheduled_for, cause=cause, attempt=attempt, decided_until=decided
            )
            going = dataclasses.replace(going, claim=claim, kept=kept)
        assert scheduled_for <= now, "never before its time"
        now += timedelta(seconds=taken)
        after = after_run(going, RunOutcome(outcome), now=now, random=0.0)
        if after.attempt == 0 and outcome != "interrupted":
            assert fate.setdefault(scheduled_for, "run") == "run"
        record_skip(after.skip)
        decided, kept, cause, attempt = after.decided_until, after.kept, after.cause, after.attempt
        scheduled_for = after.scheduled_for
        next_run_at = max(after.next_run_at or now, now + timedelta(seconds=after.delay_seconds))
        assert (scheduled_for - T0) % step == timedelta(0), "no drift"

    waiting = {scheduled_for, *kept}
    assert not waiting & fate.keys()
    expected = T0
    while expected <= decided:
        assert (expected in fate) != (expected in waiting), expected
        expected += step
    assert all(tick <= decided or tick in waiting for tick in fate)
