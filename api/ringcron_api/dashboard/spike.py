"""When a spike clears, and what would make it clear sooner, from the forecast of the next hour. Pure.

The model is that of `ringcron.forecast`: work in seconds of runs, by the durations that workers measure, drains at the
capacity of the pool. Ticks that follow from schedules are in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import Final

from ringcron.forecast import Prediction, desired_capacity, predict
from ringcron_api.forecast_schemas import AutoscaleQuery
from ringcron_api.forecasts import Outlook

TARGET_SECONDS: Final = 30
"""How late the last job of a spike may start before more capacity is suggested."""
ROW_SECONDS: Final = 60
BUSIEST_SHOWN: Final = 10
NO_FORECAST: Final = "the forecast could not be made"
_ASKED: Final = AutoscaleQuery()
"""GET /autoscale without parameters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spike:
    """What is to come, and how the pool gets through it."""

    outlook: Outlook
    prediction: Prediction
    measured: bool
    """Whether a worker has measured how long a run takes. If none has, lengths are guesses, and not shown."""
    busiest: tuple[tuple[datetime, int], ...]
    """The busiest seconds, and the jobs that become due in them; the busiest first."""
    capacity_for_target: int
    """Runs at the same time with which no job starts later than TARGET_SECONDS."""
    desired_capacity: int
    """As GET /autoscale gives it."""

    @property
    def worst_second(self) -> int:
        """The second that a person calls the spike: the busiest of those in a row that end where the last job begins to
        wait longest."""
        due, last = self.outlook.coming.due, self.prediction.worst_second
        first = last
        while first > 0 and due[first - 1] and last - first < ROW_SECONDS:
            first -= 1
        return max(range(first, last + 1), key=lambda second: due[second])

    @property
    def worst_due(self) -> int:
        """Jobs that become due in that second; 0: those that wait now are the worst."""
        due = self.outlook.coming.due
        return due[self.worst_second] if due[self.prediction.worst_second] else 0

    def at(self, second: int) -> datetime:
        """The instant of a second of the forecast."""
        return self.outlook.coming.start + timedelta(seconds=second)

    def runs_per_second(self, capacity: int) -> float | None:
        """What so many places can do at most, all busy; None: not known."""
        return capacity / self.outlook.mean_seconds if self.measured and self.outlook.mean_seconds > 0 else None


def spike_of(outlook: Outlook, *, measured: bool) -> Spike:
    """What the forecast comes to."""
    coming, work = outlook.coming, outlook.backlog_work
    due = [(second, jobs) for second, jobs in enumerate(coming.due) if jobs]
    lead, clear = (math.ceil(asked.total_seconds()) for asked in (_ASKED.lead, _ASKED.clear))
    return Spike(
        outlook=outlook,
        prediction=predict(coming, backlog_work=work, capacity=outlook.capacity),
        measured=measured,
        busiest=tuple(
            (coming.start + timedelta(seconds=second), jobs)
            for second, jobs in nsmallest(BUSIEST_SHOWN, due, key=lambda one: (-one[1], one[0]))
        ),
        capacity_for_target=desired_capacity(
            coming, backlog_work=work, lead_seconds=len(coming.due), clear_seconds=TARGET_SECONDS
        ),
        desired_capacity=desired_capacity(coming, backlog_work=work, lead_seconds=lead, clear_seconds=clear),
    )


def scale_top(values: Sequence[float]) -> int:
    """A round number at or above all of them: the top of a chart."""
    top = max(values, default=0.0)
    if top <= 4:
        return 4
    power: int = 10 ** math.floor(math.log10(top))
    return next(step * power // 2 for step in (2, 4, 10, 20) if step * power / 2 >= top)
