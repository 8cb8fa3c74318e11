"""Ratios, ranges and goals of a comparison, from forged records."""

from __future__ import annotations

from typing import Any

import pytest

from loadtest.compare.ratios import Comparison, GoalResult, Range, compare_runs, judge_goals
from loadtest.compare.works import Goal, Measure, Work

TIME = Measure(key="last_start", name="last start", unit="s")
RATE = Measure(key="per_second", name="rate", unit="jobs/s", less=False)
KINDS = {"ringcron": "ringcron", "limit": "limit", "snake": "python", "crab": "node"}
CLEAN = {"jobs": 10, "started": 10, "recorded": 10, "missed": 0, "twice": 0, "early": 0}


def work(*goals: Goal) -> Work:
    return Work(
        name="spike",
        title="a spike",
        way="due together",
        workers=4,
        jobs=10,
        ballast=0,
        measures=(TIME, RATE),
        goals=goals,
    )


def run(contestant: str, number: int, **changes: Any) -> dict[str, Any]:
    """A clean run; figures by name, everything else as in the record."""
    figures = {key: changes.pop(key) for key in ("last_start", "per_second") if key in changes}
    document = {"work": "spike", "contestant": contestant, "round": number, "figures": figures}
    return {**document, "counts": CLEAN, "cut": False, "broken": None, **changes}


def the_one(comparisons: list[Comparison], contestant: str, measure: Measure = TIME) -> Comparison:
    [found] = [one for one in comparisons if one.contestant == contestant and one.measure == measure]
    return found


def goals_of(row: Work, runs: list[dict[str, Any]], absent: dict[str, str] | None = None) -> list[GoalResult]:
    return judge_goals(row, compare_runs(row, runs, absent or {}), KINDS, list(KINDS))


def test_a_ratio_is_taken_within_a_round_and_has_a_range() -> None:
    runs = [run("ringcron", number, last_start=figure) for number, figure in enumerate((1.0, 2.0, 3.0))]
    runs += [run("limit", number, last_start=figure) for number, figure in enumerate((1.0, 1.0, 2.0))]
    found = the_one(compare_runs(work(), runs, {}), "limit")
    assert found.ratio == Range(1.5, 1.0, 2.0)
    assert found.figures == Range(1.0, 1.0, 2.0)
    assert the_one(compare_runs(work(), runs, {}), "ringcron").ratio is None


def test_rounds_that_only_one_of_them_finished_give_no_ratio() -> None:
    runs = [
        run("ringcron", 1, last_start=1.0),
        run("ringcron", 2, broken="it fell over"),
        run("limit", 2, last_start=1),
    ]
    found = the_one(compare_runs(work(), runs, {}), "limit")
    assert found.ratio is None
    assert the_one(compare_runs(work(), runs, {}), "ringcron").remark == "1 of 2 runs broke: it fell over"


def test_runs_of_other_works_do_not_count() -> None:
    runs = [run("ringcron", 1, last_start=1.0), run("limit", 1, last_start=1.0, work="drain")]
    assert [one.contestant for one in compare_runs(work(), runs, {})] == ["ringcron", "ringcron"]


@pytest.mark.parametrize("fault", ["missed", "twice", "early"])
def test_a_run_with_a_fault_has_no_figures(fault: str) -> None:
    runs = [run("ringcron", 1, last_start=1.0), run("snake", 1, last_start=9.0, counts={**CLEAN, fault: 1})]
    found = the_one(compare_runs(work(), runs, {}), "snake")
    assert found.figures is None
    assert found.ratio is None
    assert f"{fault} 1" in found.remark


def test_an_absent_peer_is_absent_and_not_beaten() -> None:
    row = work(Goal(measure="last_start", against="peers", at_most=1.0))
    runs = [run("ringcron", 1, last_start=1.0), run("snake", 1, last_start=2.0)]
    absent = {"crab": "no such package"}
    found = the_one(compare_runs(row, runs, absent), "crab")
    assert found.ratio is None
    assert found.remark == "absent: no such package"
    assert [(goal.contestant, goal.verdict) for goal in goals_of(row, runs, absent)] == [
        ("snake", "reached"),
        ("crab", "open"),
    ]


def test_whoever_never_got_there_in_time_is_beaten_by_whoever_did() -> None:
    row = work(Goal(measure="last_start", against="snake", at_most=1.0))
    counts = {**CLEAN, "started": 3, "recorded": 2, "missed": 7}
    cut = run("snake", 1, last_start=None, cut=True, counts=counts)
    [goal] = goals_of(row, [run("ringcron", 1, last_start=1.0), cut])
    assert (goal.verdict, goal.value) == ("reached", None)
    assert goal.remark == "cut: 3 of 10 started, 2 recorded"
    [goal] = goals_of(row, [run("ringcron", 1, broken="it fell over"), cut])
    assert goal.verdict == "open"


def test_the_rate_of_a_run_that_was_cut_counts() -> None:
    runs = [run("ringcron", 1, per_second=300.0)]
    runs += [run("snake", 1, per_second=3.0, cut=True, counts={**CLEAN, "missed": 7})]
    assert the_one(compare_runs(work(), runs, {}), "snake", RATE).ratio == Range(100.0, 100.0, 100.0)


def test_goals_are_judged_by_the_median_against_each_whom_they_name() -> None:
    row = work(
        Goal(measure="last_start", against="limit", at_most=1.5),
        Goal(measure="per_second", against="python", at_least=2.0),
        Goal(measure="last_start", against=None, at_most=0.5),
    )
    runs = [
        run("ringcron", 1, last_start=1.4, per_second=30.0),
        run("limit", 1, last_start=1.0, per_second=1.0),
        run("snake", 1, last_start=1.0, per_second=20.0),
        run("crab", 1, last_start=1.0, per_second=1.0),
    ]
    assert [(goal.contestant, goal.verdict, goal.value) for goal in goals_of(row, runs)] == [
        ("limit", "reached", Range(1.4, 1.4, 1.4)),
        ("snake", "not reached", Range(1.5, 1.5, 1.5)),
        (None, "not reached", Range(1.4, 1.4, 1.4)),
    ]
