"""From run documents to ratios with ranges. Pure.

A ratio is ringcron's figure divided by another's, of the same round: neighbours in time meet the same machine. Its
range is the least and the greatest over the rounds. An absent contestant has no ratio, and a goal against it is open,
not reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from loadtest.compare.works import Goal, Measure, Work
from loadtest.distributions import median

OURS: Final = "ringcron"
LIMIT: Final = "limit"

Verdict = Literal["reached", "not reached", "open"]
RunDocument = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Range:
    """The middle of a few values, and how far they reach."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Range | None:
        """None of no values."""
        return cls(median(values), min(values), max(values)) if values else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One measure of one contestant in one work, beside ringcron's."""

    measure: Measure
    contestant: str
    figures: Range | None
    ratio: Range | None
    """ringcron's divided by theirs; None for ringcron itself and where either has no figure."""
    remark: str
    """Why a figure is missing, or what it is worth: absent, cut, faulty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalResult:
    """One goal, against one contestant or (`contestant` None) by itself. `value` is what was bounded."""

    goal: Goal
    contestant: str | None
    value: Range | None
    verdict: Verdict
    remark: str = ""


def compare_runs(work: Work, runs: Sequence[RunDocument], absent: Mapping[str, str]) -> list[Comparison]:
    """Every measure of every contestant, ringcron first, the limit second."""
    own = [run for run in runs if run["work"] == work.name]
    names = _ordered({run["contestant"] for run in own} | set(absent))
    return [_compare(measure, name, own, absent) for measure in work.measures for name in names]


def judge_goals(
    work: Work, comparisons: Sequence[Comparison], kinds: Mapping[str, str], expected: Sequence[str]
) -> list[GoalResult]:
    """Each goal against each whom it names. `expected`: everyone that the work is for; `kinds`: their kinds."""
    by_key = {(comparison.measure.key, comparison.contestant): comparison for comparison in comparisons}
    results = []
    for goal in work.goals:
        if goal.against is None:
            ours = by_key.get((goal.measure, OURS))
            value = None if ours is None else ours.figures
            results.append(_result(goal, None, value, "" if ours is None else ours.remark))
            continue
        for name in _whom(goal, kinds, expected):
            theirs = by_key.get((goal.measure, name))
            ours = by_key.get((goal.measure, OURS))
            if theirs is None:
                results.append(_result(goal, name, None, "did not take part"))
            elif _never_there(theirs) and ours is not None and ours.figures is not None and theirs.measure.less:
                results.append(
                    GoalResult(goal=goal, contestant=name, value=None, verdict="reached", remark=theirs.remark)
                )
            else:
                remark = theirs.remark or ("" if ours is None else ours.remark)
                results.append(_result(goal, name, theirs.ratio, remark))
    return results


def _compare(measure: Measure, name: str, runs: Sequence[RunDocument], absent: Mapping[str, str]) -> Comparison:
    own = [run for run in runs if run["contestant"] == name]
    figures = {run["round"]: run["figures"].get(measure.key) for run in own if _counts(run)}
    ours = {run["round"]: run["figures"].get(measure.key) for run in runs if run["contestant"] == OURS and _counts(run)}
    ratios = [
        ours[number] / theirs
        for number, theirs in figures.items()
        if name != OURS and theirs and ours.get(number) is not None
    ]
    return Comparison(
        measure=measure,
        contestant=name,
        figures=Range.of([figure for figure in figures.values() if figure is not None]),
        ratio=Range.of(ratios),
        remark=f"absent: {absent[name]}" if name in absent else _remark(own),
    )


def _counts(run: RunDocument) -> bool:
    """Whether its figures mean anything: nothing broke, doubled or ran early, and what is missing was cut, not lost."""
    if run["broken"] is not None:
        return False
    counts = run["counts"]
    return counts is None or not (counts["twice"] or counts["early"] or (counts["missed"] and not run["cut"]))


def _remark(runs: Sequence[RunDocument]) -> str:
    said = []
    if broken := [run["broken"] for run in runs if run["broken"] is not None]:
        said.append(f"{len(broken)} of {len(runs)} runs broke: {broken[0].splitlines()[0]}")
    for run in runs:
        counts = run["counts"]
        if run["cut"] and counts is not None:
            said.append(f"cut: {counts['started']:,} of {counts['jobs']:,} started, {counts['recorded']:,} recorded")
        elif run["cut"]:
            said.append("not within the time")
        elif run["broken"] is None and not _counts(run):
            said.append(f"missed {counts['missed']}, twice {counts['twice']}, early {counts['early']}: not counted")
    return "; ".join(dict.fromkeys(said))


def _never_there(comparison: Comparison) -> bool:
    return comparison.figures is None and comparison.remark.startswith(("cut", "not within"))


def _result(goal: Goal, name: str | None, value: Range | None, remark: str) -> GoalResult:
    if value is None:
        return GoalResult(goal=goal, contestant=name, value=None, verdict="open", remark=remark)
    verdict: Verdict = "reached" if goal.reached(value.median) else "not reached"
    return GoalResult(goal=goal, contestant=name, value=value, verdict=verdict, remark=remark)


def _whom(goal: Goal, kinds: Mapping[str, str], expected: Sequence[str]) -> list[str]:
    if goal.against == "peers":
        return [name for name in expected if kinds[name] in ("python", "node")]
    if goal.against == "python":
        return [name for name in expected if kinds[name] == "python"]
    return [name for name in expected if name == goal.against]


def _ordered(names: set[str]) -> list[str]:
    return sorted(names, key=lambda name: (name != OURS, name != LIMIT, name))
