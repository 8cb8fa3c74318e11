"""The calls that create many jobs, or none: a part of the table of calls in `routes`."""

from __future__ import annotations

from typing import Final

from ringcron.api_keys import Scope
from ringcron_api.batch import BATCH_SECONDS, create_jobs
from ringcron_api.batch_body import BATCH_LIMIT
from ringcron_api.creation_schemas import Batch, CreateJobs, PreviewSchedule
from ringcron_api.creation_shapes import BatchResultShape, BatchResultsShape, PreviewShape
from ringcron_api.openapi import examples
from ringcron_api.operations import Answer, Operation
from ringcron_api.previews import preview_schedule
from ringcron_api.schemas import CreateJob

CREATES: Final = (
    Operation(
        method="POST",
        path="/jobs/batch",
        handler=create_jobs,
        name="createJobs",
        group="Jobs",
        summary="Schedule many jobs",
        description="At most 10,000 jobs and 64 MiB. Each is stored or not by itself: a fault of one is in its result. "
        "NDJSON is answered with NDJSON, in which blank lines have no results; a line may have 1 MiB.",
        query=CreateJobs,
        body=Batch,
        body_line=CreateJob,
        body_examples={"two": {"jobs": [examples.CREATE_BODIES["once"], examples.CREATE_BODIES["cron"]]}},
        idempotent=True,
        traced=True,
        body_limit=BATCH_LIMIT,
        seconds=BATCH_SECONDS,
        answers={
            207: Answer(description="What became of each job.", shape=BatchResultsShape, line=BatchResultShape),
            201: Answer(description="With `atomic`: all are stored.", shape=BatchResultsShape, line=BatchResultShape),
        },
        problems=("store-unavailable",),
    ),
    Operation(
        method="POST",
        path="/schedules/preview",
        handler=preview_schedule,
        name="previewSchedule",
        group="Jobs",
        summary="Show the next ticks of a schedule, without a job",
        description="Marks tell of ticks that a clock change moved (their local time does not exist) or repeated.",
        scope=Scope.READ,
        body=PreviewSchedule,
        body_examples={"night": examples.PREVIEW_BODY},
        answers={200: Answer(description="The ticks.", shape=PreviewShape, examples={"night": examples.PREVIEW})},
        problems=("schedule-never-fires", "store-unavailable"),
    ),
)
