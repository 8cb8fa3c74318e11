"""The shapes of the answers of batches and previews, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, RootModel

from ringcron.cron import ClockMark
from ringcron_api.shapes import Instant, JobId, Shape


class BatchStoredShape(Shape):
    """A job of a batch that was stored."""

    index: int = Field(ge=0, description="Its place in the body, from 0.")
    status: Literal[200, 201] = Field(description="200: the key's job was kept or replaced.")
    job_id: JobId
    next_run_at: Instant | None


class BatchErrorShape(Shape):
    """A job of a batch that was not stored."""

    index: int = Field(ge=0)
    status: int = Field(ge=400, description="What `POST /jobs` would have answered.")
    error: dict[str, Any] = Field(
        description="A problem without `instance` and `requestId`; pointers in its `errors` are relative to the job."
    )


class BatchResultShape(RootModel[BatchStoredShape | BatchErrorShape]):
    """What became of one job of a batch; one such line for each line of an NDJSON body."""


class BatchResultsShape(Shape):
    """What became of each job, in the order of the body."""

    results: list[BatchResultShape]


class MarkShape(Shape):
    """A tick that a clock change moved or repeated."""

    at: Instant
    mark: ClockMark


class PreviewShape(Shape):
    next_runs: list[Instant] = Field(description="Ticks, strictly later than `after`. Fewer where the schedule ends.")
    marks: list[MarkShape] = Field(description="Those among them that a clock change moved or repeated.")
