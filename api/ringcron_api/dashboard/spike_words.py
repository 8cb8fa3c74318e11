"""The sentence that says when the spike ahead clears. Pure."""

from __future__ import annotations

from ringcron_api.dashboard.phrases import clock, counted, number, span
from ringcron_api.dashboard.spike import NO_FORECAST, TARGET_SECONDS, Spike


def sentence(spike: Spike | None) -> str:
    """When the spike ahead clears, and what would make it clear sooner."""
    if spike is None:
        return f"What becomes due within the hour is not known: {NO_FORECAST}."
    if spike.outlook.complete:
        return _foretold(spike)
    return f"{_foretold(spike)} More becomes due than was counted."


def _foretold(spike: Spike) -> str:
    outlook, found = spike.outlook, spike.prediction
    if found.peak_second is None and not outlook.backlog:
        return "Nothing becomes due within the hour."
    most = ""
    if found.peak_second is not None:
        most = f"At most {_due(found.peak_due)} in one second, at {clock(spike.at(found.peak_second))} UTC. "
    if found.worst_delay_seconds is None or outlook.capacity == 0:
        return f"{most}No worker claims, so that nothing due would start."
    if not spike.measured:
        return f"{most}How late the last starts is not known: no worker has measured yet how long a run takes."
    pool = f"with {number(outlook.capacity)} at a time and {span(outlook.mean_seconds)} a run"
    late = span(found.worst_delay_seconds)
    if found.worst_delay_seconds < 1:
        return f"No spike within the hour. {most}{pool[0].upper()}{pool[1:]} the last starts {late} late."
    at = clock(spike.at(spike.worst_second))
    what = f"{_due(spike.worst_due)} at {at} UTC"
    if not spike.worst_due:
        what = f"{counted(outlook.backlog, 'job')} {'is' if outlook.backlog == 1 else 'are'} due now"
    over = "it is not over within the hour"
    if found.clears_after_seconds is not None:
        over = f"it is over at {clock(spike.at(found.clears_after_seconds))}"
    said = f"{what}; {pool} the last starts about {late} late, and {over}."
    if found.worst_delay_seconds <= TARGET_SECONDS:
        return said
    return f"{said} {number(spike.capacity_for_target)} at a time would make it {TARGET_SECONDS} s."


def _due(count: int) -> str:
    return f"{counted(count, 'job')} {'becomes' if count == 1 else 'become'} due"
