"""The outcome of a comparison: tables of figures, ratios and goals, bars, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadtest.compare.contestants import Contestant
from loadtest.compare.ratios import LIMIT, OURS, Comparison, GoalResult, Range, compare_runs, judge_goals
from loadtest.compare.session import Results
from loadtest.compare.works import Goal, Measure, Work
from loadtest.outcome import Bar, BarChart, Outcome, Table, number

_AGAINST_ITSELF = "itself"


def tell(
    works: Sequence[Work],
    contestants: Sequence[Contestant],
    results: Results,
    *,
    command: str,
    arguments: Mapping[str, Any],
) -> Outcome:
    """Everything that the runs say."""
    outcome = Outcome(
        command=command,
        title="ringcron beside other schedulers and the limit",
        question="The same work, interleaved, on one durable PostgreSQL. Ratio: ringcron's figure divided by theirs.",
        arguments=arguments,
        runs=list(results.runs),
    )
    kinds: dict[str, str] = {contestant.name: contestant.kind for contestant in contestants}
    for work in works:
        absent = {name: why for name, why in results.absent.items() if work.limit or name != LIMIT}
        comparisons = compare_runs(work, results.runs, absent)
        expected = [contestant.name for contestant in contestants if work.limit or contestant.kind != "limit"]
        outcome.tables += [_figures_table(work, measure, comparisons, results.runs) for measure in work.measures]
        if goals := judge_goals(work, comparisons, kinds, expected):
            outcome.tables.append(_goals_table(work, goals))
        outcome.charts += [_bars(work, measure, comparisons) for measure in work.measures]
    outcome.notes += [f"absent, so neither beaten nor unbeaten: {name} ({why})" for name, why in results.absent.items()]
    outcome.problems += _problems(results.runs)
    outcome.notes += _others_faults(results.runs)
    return outcome


def _figures_table(
    work: Work, measure: Measure, comparisons: Sequence[Comparison], runs: Sequence[Mapping[str, Any]]
) -> Table:
    rows = [
        [
            comparison.contestant,
            _range_text(comparison.figures),
            "" if comparison.contestant == OURS else _range_text(comparison.ratio),
            _faults(comparison.contestant, work, runs),
            comparison.remark,
        ]
        for comparison in comparisons
        if comparison.measure == measure
    ]
    columns = ["", f"{measure.unit} (range)", "ringcron ÷ it (range)", "missed/twice/early", ""]
    better = "less is better" if measure.less else "more is better"
    return Table(title=f"{work.name}: {measure.name}; {better}", columns=columns, rows=rows, note=work.title)


def _goals_table(work: Work, goals: Sequence[GoalResult]) -> Table:
    names = {measure.key: measure for measure in work.measures}
    rows = [
        [
            _against(result.goal, result.contestant),
            names[result.goal.measure].name,
            result.goal.text + ("" if result.contestant else f" {names[result.goal.measure].unit}"),
            _range_text(result.value),
            result.verdict,
            result.remark,
        ]
        for result in goals
    ]
    columns = ["against", "what", "goal", "ratio or figure (range)", "median", ""]
    return Table(title=f"Goals: {work.name}", columns=columns, rows=rows)


def _bars(work: Work, measure: Measure, comparisons: Sequence[Comparison]) -> BarChart:
    bars = [
        Bar(
            name=comparison.contestant,
            value=comparison.figures.median,
            low=comparison.figures.least,
            high=comparison.figures.greatest,
            role="ideal" if comparison.contestant == LIMIT else "plain" if comparison.contestant == OURS else "muted",
        )
        for comparison in comparisons
        if comparison.measure == measure and comparison.figures is not None
    ]
    better = "less is better" if measure.less else "more is better"
    return BarChart(title=f"{work.name}: {measure.name}", x=f"{measure.unit} ({better})", bars=bars)


def _problems(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What ringcron or the limit did wrong: it fails the comparison."""
    said = []
    for run in runs:
        if run["contestant"] not in (OURS, LIMIT):
            continue
        where = f"{run['contestant']}, {run['work']}, round {run['round']}"
        if run["broken"] is not None:
            said.append(f"{where}: {run['broken']}")
        elif run["cut"]:
            said.append(f"{where}: not done within the time")
        elif _faulty(run):
            counts = run["counts"]
            said.append(f"{where}: missed {counts['missed']}, twice {counts['twice']}, early {counts['early']}")
    return said


def _others_faults(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{run['contestant']}, {run['work']}, round {run['round']}: broken: {run['broken'].splitlines()[0]}"
        for run in runs
        if run["contestant"] not in (OURS, LIMIT) and run["broken"] is not None
    ]


def _faulty(run: Mapping[str, Any]) -> bool:
    counts = run["counts"]
    return counts is not None and bool(counts["missed"] or counts["twice"] or counts["early"])


def _faults(name: str, work: Work, runs: Sequence[Mapping[str, Any]]) -> str:
    counted = [
        run["counts"]
        for run in runs
        if run["contestant"] == name and run["work"] == work.name and run["counts"] is not None
    ]
    if not counted:
        return ""
    return "/".join(str(sum(counts[key] for counts in counted)) for key in ("missed", "twice", "early"))


def _against(goal: Goal, contestant: str | None) -> str:
    return contestant or (goal.against or _AGAINST_ITSELF)


def _range_text(value: Range | None, unit: str = "") -> str:
    if value is None:
        return "–"
    text = f"{number(value.median)} ({number(value.least)}–{number(value.greatest)})"
    return f"{text} {unit}".strip()
