"""Every call of the API: the table from which the router and the OpenAPI document are made."""

from __future__ import annotations

from typing import Final

from ringcron_api.acts import ACTS
from ringcron_api.creates import CREATES
from ringcron_api.creation_schemas import CreateJobQuery
from ringcron_api.fleet import list_shards, list_workers
from ringcron_api.health import healthz, readyz, show_metrics
from ringcron_api.history import list_audit, list_runs, list_skips
from ringcron_api.jobs import cancel_job, create_job, get_job, list_jobs
from ringcron_api.openapi import examples
from ringcron_api.operations import Answer, Operation
from ringcron_api.outlooks import OUTLOOKS
from ringcron_api.reference import show_document, show_page
from ringcron_api.schemas import AfterCurrent, CreateJob, ListJobs, Page
from ringcron_api.shapes import (
    AuditShape,
    CreatedJobShape,
    Health,
    JobPage,
    OpenApiDocument,
    Readiness,
    RunShape,
    Shards,
    SkipShape,
    WholeJobShape,
    WorkerPage,
)

_NEXT_PAGE: Final = {"Link": '`<…>; rel="next"`: the next page. Not there on the last one.'}

OPERATIONS: Final = (
    Operation(
        method="POST",
        path="/jobs",
        handler=create_job,
        name="createJob",
        group="Jobs",
        summary="Schedule a job, once or at each tick of a schedule",
        description="A one-off is a schedule that fires once. To be able to send the request again after a cut "
        "connection, give it an `Idempotency-Key`.",
        query=CreateJobQuery,
        body=CreateJob,
        body_examples=examples.CREATE_BODIES,
        idempotent=True,
        traced=True,
        answers={
            201: Answer(
                description="The job, and when it will run next.",
                shape=CreatedJobShape,
                headers={"Location": "The path of the job."},
                examples={"cron": examples.CREATED},
            ),
            200: Answer(
                description="The key's job, kept or replaced. With `dryRun`: what would have been answered.",
                shape=CreatedJobShape,
                headers={"Location": "The path of the job."},
            ),
        },
        problems=("schedule-never-fires", "key-exists", "job-claimed", "store-unavailable"),
    ),
    *CREATES,
    Operation(
        method="GET",
        path="/jobs",
        handler=list_jobs,
        name="listJobs",
        group="Jobs",
        summary="List jobs, newest first",
        description="A filter by `handler` alone walks through the jobs by id; give `state` too where there are many.",
        query=ListJobs,
        answers={200: Answer(description="A page of jobs.", shape=JobPage, examples={"page": examples.JOB_PAGE})},
        problems=("invalid-cursor", "store-unavailable"),
    ),
    Operation(
        method="GET",
        path="/jobs/{jobId}",
        handler=get_job,
        name="getJob",
        group="Jobs",
        summary="Show a job",
        description="A job that has ended is shown until it leaves with retention.",
        answers={200: Answer(description="The job.", shape=WholeJobShape, examples={"job": examples.JOB})},
        problems=("not-found", "store-unavailable"),
    ),
    Operation(
        method="DELETE",
        path="/jobs/{jobId}",
        handler=cancel_job,
        name="cancelJob",
        group="Jobs",
        summary="Cancel a job, unless a worker has claimed it",
        description="One atomic statement decides. 204: nothing will start any more; also where the job was cancelled "
        "or had ended before. 409: a worker had already claimed it, and it may be running. The key and the tags of a "
        "cancelled job are free at once. A lease that has lapsed does not protect a job.",
        query=AfterCurrent,
        answers={
            204: Answer(description="Nothing will start any more."),
            202: Answer(
                description="Only with `afterCurrent=true`: nothing follows the run in progress.",
                shape=WholeJobShape,
            ),
        },
        problems=("not-found", "job-claimed", "store-unavailable"),
    ),
    *ACTS,
    Operation(
        method="GET",
        path="/jobs/{jobId}/runs",
        handler=list_runs,
        name="listRuns",
        group="History",
        summary="List the runs of a job, newest first",
        description="Plural, because execution is at least once. The run in progress comes first, with `finishedAt` "
        "and `outcome` null. Runs outlive their job: they are kept as long as retention says.",
        query=Page,
        answers={
            200: Answer(
                description="A page of runs.",
                shape=RunShape,
                listed=True,
                headers=_NEXT_PAGE,
                examples={"runs": examples.RUNS},
            )
        },
        problems=("invalid-cursor", "not-found", "store-unavailable"),
    ),
    Operation(
        method="GET",
        path="/jobs/{jobId}/skips",
        handler=list_skips,
        name="listSkips",
        group="History",
        summary="List the ticks of a job that were deliberately not run, newest first",
        query=Page,
        answers={
            200: Answer(
                description="A page of skips.",
                shape=SkipShape,
                listed=True,
                headers=_NEXT_PAGE,
                examples={"skips": examples.SKIPS},
            )
        },
        problems=("invalid-cursor", "not-found", "store-unavailable"),
    ),
    Operation(
        method="GET",
        path="/jobs/{jobId}/audit",
        handler=list_audit,
        name="listAudit",
        group="History",
        summary="List what callers did to a job, newest first",
        description="Who cancelled, patched, paused, resumed, triggered or redrove it, or cancelled a run of it; "
        "written with the change itself. Not its creation, and not a redrive of many. Kept as long as runs are.",
        query=Page,
        answers={
            200: Answer(
                description="A page of entries.",
                shape=AuditShape,
                listed=True,
                headers=_NEXT_PAGE,
                examples={"audit": examples.AUDIT},
            )
        },
        problems=("invalid-cursor", "not-found", "store-unavailable"),
    ),
    Operation(
        method="GET",
        path="/shards",
        handler=list_shards,
        name="listShards",
        group="Pool",
        summary="Show who owns which slots, and how late they are",
        description="Read at most once a second, from what workers report and from the jobs table.",
        answers={200: Answer(description="The ring.", shape=Shards, examples={"shards": examples.SHARDS})},
        problems=("store-unavailable",),
    ),
    Operation(
        method="GET",
        path="/workers",
        handler=list_workers,
        name="listWorkers",
        group="Pool",
        summary="List the workers that reported within 15 seconds",
        query=Page,
        answers={200: Answer(description="A page of workers.", shape=WorkerPage, examples={"page": examples.WORKERS})},
        problems=("invalid-cursor", "store-unavailable"),
    ),
    *OUTLOOKS,
    Operation(
        method="GET",
        path="/healthz",
        handler=healthz,
        name="healthz",
        group="Operations",
        open=True,
        query=None,
        summary="Whether this process answers; depends on nothing",
        answers={200: Answer(description="It does.", shape=Health)},
    ),
    Operation(
        method="GET",
        path="/readyz",
        handler=readyz,
        name="readyz",
        group="Operations",
        open=True,
        query=None,
        summary="Whether the database answers and has the schema that this version needs",
        answers={200: Answer(description="It does.", shape=Readiness)},
        problems=("store-unavailable",),
    ),
    Operation(
        method="GET",
        path="/metrics",
        handler=show_metrics,
        name="metrics",
        group="Operations",
        needs_store=False,
        any_host=True,
        query=None,
        summary="Metrics of this process for Prometheus",
        answers={200: Answer(description="Prometheus' text format.", media_type="text/plain")},
    ),
    Operation(
        method="GET",
        path="/openapi.json",
        handler=show_document,
        name="openapi",
        group="Operations",
        open=True,
        query=None,
        summary="This document",
        answers={200: Answer(description="OpenAPI 3.1.", shape=OpenApiDocument)},
    ),
    Operation(
        method="GET",
        path="/docs",
        handler=show_page,
        name="docs",
        group="Operations",
        open=True,
        query=None,
        summary="This document for people",
        answers={200: Answer(description="A page without scripts.", media_type="text/html")},
    ),
)
