"""The calls that look ahead: a part of the table of calls in `routes`."""

from __future__ import annotations

from typing import Final

from ringcron_api.forecast_schemas import AutoscaleQuery, AutoscaleShape, ForecastQuery, ForecastShape
from ringcron_api.forecasts import show_autoscale, show_forecast
from ringcron_api.openapi import examples
from ringcron_api.operations import Answer, Operation

OUTLOOKS: Final = (
    Operation(
        method="GET",
        path="/forecast",
        handler=show_forecast,
        name="showForecast",
        group="Pool",
        summary="Show what becomes due, and when it clears",
        description="Jobs and the ticks that follow from their schedules, by second and minute; and what the present "
        "workers make of it, by the durations that they measured. Kept for 15 seconds of an hour's horizon, for all "
        "callers. `maxRuns` and `overlap` are not looked at: what they cut off is counted.",
        query=ForecastQuery,
        answers={200: Answer(description="The forecast.", shape=ForecastShape, examples={"nine": examples.FORECAST})},
        problems=("store-unavailable",),
    ),
    Operation(
        method="GET",
        path="/autoscale",
        handler=show_autoscale,
        name="showAutoscale",
        group="Pool",
        summary="Tell how much capacity the pool should have",
        description="For a scaler such as KEDA. It counts what waits and what becomes due until a worker that is "
        "started now can run jobs, so that the pool is warm before a spike. Answers with no worker at all, too.",
        query=AutoscaleQuery,
        answers={200: Answer(description="The number.", shape=AutoscaleShape, examples={"nine": examples.AUTOSCALE})},
        problems=("store-unavailable",),
    ),
)
