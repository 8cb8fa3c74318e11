"""A database whose clock steps: its instants are told as if it had not, and what was due is judged by what it said."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtest.chaos.history import Fault, History, Hit, Run, Step, Version
from loadtest.chaos.invariants import check
from loadtest.chaos.keeping import keep, read
from loadtest.chaos.stepping import Unstepped, without_steps
from loadtest.chaos.truth import Said

T = 1_000_000.0
FORWARD = Step(at=T, offset=30.0, seq=10)
BACK = Step(at=T + 9, offset=0.0, seq=20)
STEPS = (FORWARD, BACK)
A = "w-a.1"


def version(seq: int, at: float, state: str, **more: object) -> Version:
    held = {"owner": A, "lease_until": at + 6, "generation": 1} if state == "claimed" else {}
    row = {"change": "update", "next_run_at": T, "scheduled_for": T - 1, "generation": 1, **held, **more}
    return Version(seq=seq, at=at, job="j", state=state, **row)  # type: ignore[arg-type]


def run(claimed_at: float, finished_at: float, outcome: str) -> Run:
    return Run(
        job="j",
        generation=1,
        claimed_at=claimed_at,
        finished_at=finished_at,
        attempt=1,
        scheduled_for=T - 1,
        cause="schedule",
        worker=A,
        outcome=outcome,
    )


def hit(scheduled_for: float, begin: float) -> Hit:
    return Hit(job="j", generation=1, scheduled_for=scheduled_for, attempt=1, worker=A, begin=begin, end=begin + 0.1)


@pytest.mark.parametrize(
    ("said", "seq", "at"),
    [
        (T - 1, 5, T - 1),
        (T + 35, 15, T + 5),
        (T + 12, 25, T + 12),
        (T + 30.01, 10, T + 0.01),  # after the step, and noted before it was seen
        (T - 0.01, 11, T - 0.01),  # the other way round
        (T + 38.99, 21, T + 8.99),
    ],
)
def test_a_reading_is_told_without_the_steps(said: float, seq: int, at: float) -> None:
    assert Unstepped(STEPS).by_order(said, seq, at - 0.5) == pytest.approx(at, rel=1e-12)


def test_where_the_clock_said_the_same_twice_the_nearest_is_meant() -> None:
    clock = Unstepped(STEPS)
    assert clock.near(T + 35, about=T + 6) == T + 5
    assert clock.near(T + 35, about=T + 33) == T + 35


def test_a_lease_that_a_change_leaves_alone_ends_when_it_did_before() -> None:
    said = [
        version(1, T - 1, "claimed"),
        version(12, T + 31, "claimed", lease_until=T + 5),  # one who asks for a cancel
        version(13, T + 32, "claimed", lease_until=T + 38),  # renewed
        version(14, T + 33, "done"),
    ]
    told = without_steps(Said(0.0, said, [run(T - 1, T + 33, "succeeded")], [], {}), STEPS)
    assert [(one.at, one.lease_until) for one in told.versions] == [
        *((T - 1, T + 5), (T + 1, T + 5), (T + 2, T + 8)),
        (T + 3, None),
    ]
    assert [(one.claimed_at, one.finished_at) for one in told.runs] == [(T - 1, T + 3)]


def test_the_clock_may_say_an_instant_twice_or_step_over_it() -> None:
    history = History(steps=STEPS)
    assert history.when_said(T - 5) == [T - 5]
    assert history.when_said(T + 35) == [T + 5, T + 35]
    assert history.when_said(T + 20) == [T, T + 20]
    assert History().when_said(T) == [T]
    assert history.latest_said(T + 1, T + 2) == T + 32
    assert history.latest_said(T + 8, T + 10) == T + 39
    assert history.latest_said(T + 10, T + 11) == T + 11


def taken_back(at: float, writer: str) -> History:
    """A lease that was renewed a second before the clock stepped forward, and taken back at `at`."""
    return History(
        versions=[
            version(1, T - 2, "due", change="insert", generation=0),
            version(2, T - 1, "claimed"),
            version(11, at, "cancelled", writer=writer),
        ],
        runs=[run(T - 1, at, "lost")],
        hits=[hit(T - 1, T - 1)],
        steps=STEPS,
        faults=[Fault(name="N15-database", target="*", begin=T, end=T + 6)],
        ended_at=T + 100,
    )


def violated(history: History) -> set[str]:
    return {violation.invariant for violation in check(history)}


def test_no_reaper_may_take_a_lease_because_of_a_step() -> None:
    assert violated(taken_back(T + 1, "w-b.1")) == {"I2", "I17"}
    assert violated(taken_back(T + 6.1, "w-b.1")) == set()


def test_a_caller_may_end_what_looks_lapsed() -> None:
    assert "I2" not in violated(taken_back(T + 1, "ringcron-api"))


@pytest.mark.parametrize(
    ("scheduled_for", "begin", "early"),
    [(T + 20, T + 1, False), (T + 38, T + 9.5, False), (T + 32, T + 1, True), (T + 45, T + 9.5, True)],
)
def test_early_is_what_the_databases_clock_says(scheduled_for: float, begin: float, early: bool) -> None:
    claimed = version(12, min(begin, T + 8.9), "claimed", scheduled_for=scheduled_for)
    history = History(versions=[claimed], hits=[hit(scheduled_for, begin)], steps=STEPS, ended_at=T + 100)
    assert ("I5" in violated(history)) is early


def test_steps_are_kept(tmp_path: Path) -> None:
    keep(History(steps=STEPS), tmp_path / "history.json.gz")
    assert read(tmp_path / "history.json.gz").steps == list(STEPS)
