"""The Python client of the API: async, typed, patient.

    import asyncio
    from datetime import timedelta

    from ringcron.client import Client, Every, NewJob

    async def main() -> None:
        async with Client("http://127.0.0.1:8080") as client:
            report = NewJob(schedule=Every(timedelta(minutes=15)), key="report", on_conflict="keep", tags=("nightly",))
            created = await client.create_job(report)
            print(created.job_id, created.next_runs)
            async for job in client.list_jobs(tag="nightly"):
                print(job.job_id, job.state, job.next_run_at)
            async for run in client.runs(created.job_id):
                print(run.started_at, run.outcome)

    asyncio.run(main())

`NewJob` says what a job may have, `Client` what can be done with it, `ringcron.client.errors` what can go wrong.
"""

from __future__ import annotations

from ringcron.client.client import Client
from ringcron.client.errors import (
    ApiError,
    FieldFault,
    Forbidden,
    JobClaimed,
    KeyExists,
    Misdirected,
    NeverFires,
    NotFound,
    RunFinished,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unreachable,
    ValidationFailed,
    WrongState,
)
from ringcron.client.history import AuditEntry, Run, Skip
from ringcron.client.jobs import BatchResult, CreatedJob, Explanation, Job, JobChanges, NewJob, Redriven, Retry
from ringcron.client.outlook import Autoscale, Forecast, Peak
from ringcron.client.pages import Listing, Page
from ringcron.client.pool import Shard, Shards, SlotLag, Worker
from ringcron.client.schedules import Cron, Every, Mark, Preview, Schedule
from ringcron.models import Arc, Catchup, Cause, JobState, OnExhausted, Overlap, RunOutcome, SkipReason

__all__ = [
    "ApiError",
    "Arc",
    "AuditEntry",
    "Autoscale",
    "BatchResult",
    "Catchup",
    "Cause",
    "Client",
    "CreatedJob",
    "Cron",
    "Every",
    "Explanation",
    "FieldFault",
    "Forbidden",
    "Forecast",
    "Job",
    "JobChanges",
    "JobClaimed",
    "JobState",
    "KeyExists",
    "Listing",
    "Mark",
    "Misdirected",
    "NeverFires",
    "NewJob",
    "NotFound",
    "OnExhausted",
    "Overlap",
    "Page",
    "Peak",
    "Preview",
    "Redriven",
    "Retry",
    "Run",
    "RunFinished",
    "RunOutcome",
    "Schedule",
    "Shard",
    "Shards",
    "Skip",
    "SkipReason",
    "SlotLag",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "ValidationFailed",
    "Worker",
    "WrongState",
]
