"""The charts that trials have in common. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from loadtest.distributions import bin_width, cumulative, rates
from loadtest.outcome import Chart, LineChart, Series
from loadtest.trial import Trial

DRAWN: int = 8
"""Repetitions that are drawn: more lines cannot be told apart."""


def delay_curve(trials: Sequence[Trial], *, ideal: Series | None, note: str) -> LineChart:
    """How many had started by when, of each repetition, beside the arithmetic."""
    series = [
        Series(
            name="started" if len(trials) == 1 else f"started, run {number}",
            points=cumulative([start.at for start in trial.starts], trial.origin),
            step=True,
        )
        for number, trial in enumerate(trials[:DRAWN], 1)
    ]
    if ideal is not None:
        series.append(ideal)
    return LineChart(
        title="Start delay",
        x="time after the due instant T (s)",
        y="jobs started (cumulative)",
        series=series,
        note=note,
    )


def rate_chart(trial: Trial, *, ideal_rate: float | None = None) -> LineChart:
    """Due, claimed, started and finished per second over time, of one repetition."""
    own = {job.id for job in trial.jobs}
    runs = [run for run in trial.runs if run.job_id in own]
    until = max([run.finished_at for run in runs] + [trial.origin + 0.05])
    width = max(bin_width(until - trial.origin), trial.plan.job_seconds)  # rounds of jobs would else look like noise
    instants = {
        "due": [job.due_at.timestamp() for job in trial.jobs],
        "claimed": [run.claimed_at for run in runs],
        "started": [start.at for start in trial.starts],
        "finished": [run.finished_at for run in runs],
    }
    spread = len(set(instants["due"])) > 1
    series = [
        Series(name=name, points=rates(found, trial.origin, until=until, width=width))
        for name, found in instants.items()
        if name != "due" or spread
    ]
    if ideal_rate is not None:
        series.append(
            Series(name="arithmetic", points=[(0.0, ideal_rate), (until - trial.origin, ideal_rate)], role="ideal")
        )
    due = "" if spread else f" All {len(trial.jobs):,} are due at T, which is off this scale and not drawn."
    return LineChart(
        title="Claimed, started and finished per second",
        x="time after the due instant T (s)",
        y="jobs per second",
        series=series,
        note=f"Counted in steps of {width:g} s.{due}",
    )


def trial_charts(trials: Sequence[Trial], *, ideal: Series | None, ideal_rate: float | None, note: str) -> list[Chart]:
    """The three pictures of a spike or a drain: of all repetitions the first, of the last one the others."""
    charts: list[Chart] = [delay_curve(trials, ideal=ideal, note=note), rate_chart(trials[-1], ideal_rate=ideal_rate)]
    lag = trials[-1].lag
    if lag is not None:
        charts.append(lag)
    return charts


def shares(name: str, values: Sequence[float]) -> Series:
    """How many percent of `values` were no greater than what."""
    points = cumulative(values, 0.0)[1:]
    return Series(name=name, points=[(value, 100 * count / len(values)) for value, count in points])
