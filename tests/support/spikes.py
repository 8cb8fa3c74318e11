"""What a dashboard foresees, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ringcron.forecast import Coming
from ringcron_api.dashboard.spike import Spike, spike_of
from ringcron_api.forecasts import Outlook

HORIZON_SECONDS = 3600


def spike_ahead(
    due: Mapping[int, int],
    *,
    start: datetime,
    capacity: int = 20,
    mean_seconds: float = 5.0,
    backlog: int = 0,
    measured: bool = True,
    complete: bool = True,
) -> Spike:
    """`due`: jobs by the second from `start` that they become due in."""
    jobs = [due.get(second, 0) for second in range(HORIZON_SECONDS)]
    coming = Coming(start=start, due=jobs, work=[each * mean_seconds for each in jobs], complete=complete)
    outlook = Outlook(
        coming=coming,
        complete=complete,
        backlog=backlog,
        backlog_work=backlog * mean_seconds,
        mean_seconds=mean_seconds,
        capacity=capacity,
    )
    return spike_of(outlook, measured=measured)
