"""The calls by which a person acts on jobs and runs: a part of the table in `routes`."""

from __future__ import annotations

from typing import Final

from ringcron.api_keys import Scope
from ringcron_api.acting import (
    REDRIVE_SECONDS,
    cancel_run,
    explain_job,
    patch_job,
    redrive_job,
    redrive_jobs,
    trigger_job,
)
from ringcron_api.openapi import examples
from ringcron_api.operations import Answer, Operation
from ringcron_api.requests import JSON, MERGE_PATCH
from ringcron_api.schemas import AfterCurrent, PatchJob, RedriveJobs
from ringcron_api.shapes import ExplanationShape, RedrivenShape, StoppingRunShape, WholeJobShape

ACTS: Final = (
    Operation(
        method="PATCH",
        path="/jobs/{jobId}",
        handler=patch_job,
        name="patchJob",
        group="Jobs",
        summary="Change, pause or resume a job",
        description="A merge patch (RFC 7396): what is not there stays, null takes a field back to its default, "
        "objects are merged (`payload` too: null takes a member of it away). What a run in progress was given stays; "
        "its retries get the new values. Where `schedule` or `runAt` changes, the occurrence that is going ends and "
        "the first new tick comes next; under a run that is refused (409), or waits for its end with "
        "`afterCurrent=true` (202). A pause stops no run: of a claimed job it waits for the end of the attempt (202), "
        "and no retry starts. Ticks that pass while a job is paused leave one skip. `key` is fixed.",
        query=AfterCurrent,
        body=PatchJob,
        body_kinds=(MERGE_PATCH, JSON),
        body_examples=examples.PATCH_BODIES,
        answers={
            200: Answer(
                description="The job after the change.", shape=WholeJobShape, examples={"paused": examples.PAUSED}
            ),
            202: Answer(description="The job; the change waits for the end of its run.", shape=WholeJobShape),
        },
        problems=("not-found", "job-claimed", "wrong-state", "schedule-never-fires", "store-unavailable"),
    ),
    Operation(
        method="POST",
        path="/jobs/{jobId}/trigger",
        handler=trigger_job,
        name="triggerJob",
        group="Acts",
        idempotent=True,
        traced=True,
        summary="Run a job now, beside its ticks",
        description="Its ticks stay, and a one-off still runs at its instant. Where an occurrence is due already or "
        "waits for a retry, that one is brought forward. Of a claimed job it runs once after the run in progress; "
        "several triggers become one. A paused job runs once and is paused again.",
        answers={202: Answer(description="The job.", shape=WholeJobShape)},
        problems=("not-found", "wrong-state", "store-unavailable"),
    ),
    Operation(
        method="POST",
        path="/jobs/{jobId}/redrive",
        handler=redrive_job,
        name="redriveJob",
        group="Acts",
        idempotent=True,
        summary="Run a dead job again, with all its attempts",
        description="The same occurrence, now. Ticks that passed while it was dead leave one skip.",
        answers={202: Answer(description="The job.", shape=WholeJobShape)},
        problems=("not-found", "wrong-state", "schedule-never-fires", "store-unavailable"),
    ),
    Operation(
        method="POST",
        path="/jobs/redrive",
        handler=redrive_jobs,
        name="redriveJobs",
        group="Acts",
        idempotent=True,
        seconds=REDRIVE_SECONDS,
        summary="Run dead jobs again, the oldest first",
        description="All that fit the filters, at most `limit`; paced by `perSecond`, so that a target that has just "
        "come back is not run over. Cut off without an `Idempotency-Key`, it may have redriven some.",
        query=RedriveJobs,
        scope=Scope.ADMIN,
        answers={
            202: Answer(
                description="How many, and when the last is due.",
                shape=RedrivenShape,
                examples={"redriven": examples.REDRIVEN},
            )
        },
        problems=("store-unavailable",),
    ),
    Operation(
        method="POST",
        path="/runs/{runId}/cancel",
        handler=cancel_run,
        name="cancelRun",
        group="Acts",
        summary="Stop a run in progress",
        description="Its worker is told within a second: an async handler is cancelled, a plain one sees "
        "`ctx.cancelled`, a command gets SIGTERM, the connection to an HTTP target is closed. A run that was finished "
        "first keeps its outcome; else it is `cancelled` and not tried again: a one-off is cancelled with it, a "
        "recurring job goes on.",
        answers={
            202: Answer(
                description="Its worker was asked.",
                shape=StoppingRunShape,
                examples={"asked": examples.STOPPING_RUN},
            )
        },
        problems=("not-found", "run-finished", "store-unavailable"),
    ),
    Operation(
        method="GET",
        path="/jobs/{jobId}/explain",
        handler=explain_job,
        name="explainJob",
        group="Acts",
        summary="Say why a job has not run yet",
        answers={
            200: Answer(
                description="The one thing that is in the way now.",
                shape=ExplanationShape,
                examples={"backOff": examples.EXPLANATION},
            )
        },
        problems=("not-found", "store-unavailable"),
    ),
)
