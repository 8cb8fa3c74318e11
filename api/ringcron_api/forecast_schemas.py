"""The queries and answers of GET /forecast and GET /autoscale, for reading and for the OpenAPI document."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, WithJsonSchema

from ringcron_api.fields import Clear, HandlerName, Horizon, Lead
from ringcron_api.schemas import Query
from ringcron_api.shapes import Instant, Shape


class ForecastQuery(Query):
    horizon: Horizon = Field(
        default=timedelta(hours=1), description="How far to look ahead.", json_schema_extra={"default": "PT1H"}
    )
    handler: HandlerName | None = None


class AutoscaleQuery(Query):
    lead: Lead = Field(
        default=timedelta(minutes=3),
        description="How long a new worker takes until it runs jobs, the scaler's own polling included.",
        json_schema_extra={"default": "PT3M"},
    )
    clear: Clear = Field(
        default=timedelta(minutes=1),
        description="Within which the jobs that are due at once are to have been run.",
        json_schema_extra={"default": "PT1M"},
    )
    handler: HandlerName | None = Field(default=None, description="Of the workers that have this handler alone.")


SecondDue = Annotated[
    list[int],
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "minItems": 2,
            "maxItems": 2,
            "description": "Seconds after startsAt, and how many jobs become due in that second.",
        }
    ),
]


class PeakShape(Shape):
    at: Instant
    due: int


class ForecastShape(Shape):
    """What becomes due, second by second, and how the pool gets through."""

    starts_at: Instant
    horizon_seconds: int
    per_second: list[SecondDue] = Field(description="Seconds in which nothing is due are left out.")
    per_minute: list[int]
    peak: PeakShape | None = Field(description="The second with the most due jobs.")
    backlog: int = Field(description="Jobs that are due and unclaimed now.")
    capacity: int = Field(description="Runs at the same time of all workers that do not drain.")
    mean_seconds: float = Field(description="How long a run lasts, as the workers measured it lately.")
    worst_delay_seconds: float | None = Field(
        description="How late the last job of the worst moment starts; null: no worker runs anything."
    )
    clears_at: Instant | None = Field(description="When nothing waits any more; null: not within the horizon.")
    complete: bool = Field(description="False: there is more than was counted.")


class AutoscaleShape(Shape):
    """How many runs at the same time the pool should be able to do."""

    desired_capacity: int = Field(
        description="So that all that is due within `lead` is run within `clear`. Divide by a worker's concurrency."
    )
    capacity: int = Field(description="What the workers that do not drain can do now.")
    backlog: int = Field(description="Jobs that are due and unclaimed now.")
    due_next_minute: int
    mean_seconds: float = Field(description="How long a run lasts, as the workers measured it lately.")
    horizon_seconds: int
