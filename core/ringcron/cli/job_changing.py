"""`ringcron job cancel | pause | resume | trigger | redrive`: what a person does to a job."""

from __future__ import annotations

from typing import Annotated

import typer

from ringcron.cli.api_call import Call
from ringcron.cli.flags import AnyJob, job_argument, number_flag, text_flag
from ringcron.cli.job_views import job_document
from ringcron.cli.tables import shown
from ringcron.client import Job, JobState
from ringcron.client.values import document_of


async def cancel_job(
    call: Call,
    job: AnyJob,
    after_current: Annotated[
        bool, typer.Option("--after-current", help="If a worker runs it: let that run be the last.")
    ] = False,
    run: Annotated[
        bool, typer.Option("--run", help="Stop the run in progress instead; a recurring job goes on.")
    ] = False,
) -> None:
    """Cancel a job, unless a worker has claimed it."""
    if after_current and run:
        raise typer.BadParameter("do not go together", param_hint="--after-current, --run")
    if run:
        await _cancel_run(call, job)
        return
    ended = await call.client.cancel_job(job, after_current=after_current)
    said = "nothing will start any more" if ended else "nothing follows the run in progress"
    call.tell({"jobId": job, "ended": ended}, lambda: typer.echo(f"cancelled {job}: {said}"))


async def _cancel_run(call: Call, job: str) -> None:
    run_id = (await call.client.get_job(job)).run_id
    if run_id is None:
        typer.echo(f"ringcron: no run of {job} is in progress", err=True)
        raise typer.Exit(1)
    worker_id = await call.client.cancel_run(run_id)
    call.tell({"runId": run_id, "workerId": worker_id}, lambda: typer.echo(f"asked {worker_id} to stop {run_id}"))


async def pause_job(
    call: Call,
    job: Annotated[str, job_argument(JobState.DUE)],
    reason: Annotated[str | None, text_flag("Why; shown with the job.")] = None,
) -> None:
    """Let a job rest until it is resumed."""
    _tell(call, await call.client.pause(job, reason), "paused", waiting="paused when its attempt has ended")


async def resume_job(call: Call, job: Annotated[str, job_argument(JobState.PAUSED)]) -> None:
    """End a pause."""
    _tell(call, await call.client.resume(job), "resumed")


async def trigger_job(call: Call, job: AnyJob) -> None:
    """Run a job once, now, besides its schedule."""
    _tell(call, await call.client.trigger(job), "triggered", waiting="runs once more after the run in progress")


async def redrive_jobs(
    call: Call,
    job: Annotated[str | None, job_argument(JobState.DEAD)] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every dead job, or those that the filters leave.")] = False,
    handler: Annotated[str | None, text_flag("With --all: only of this handler.", metavar="NAME")] = None,
    tag: Annotated[str | None, text_flag("With --all: only with this tag.")] = None,
    limit: Annotated[int | None, number_flag("With --all: at most so many.")] = None,
    per_second: Annotated[
        float | None, typer.Option(metavar="X", help="With --all: so many start in a second.")
    ] = None,
) -> None:
    """Run a dead job again, or many."""
    filters = {"--handler": handler, "--tag": tag, "--limit": limit, "--per-second": per_second}
    if (job is None) != all_:
        raise typer.BadParameter("give the id of a job, or --all", param_hint="JOB")
    if job is None:
        redriven = await call.client.redrive_all(handler=handler, tag=tag, limit=limit, per_second=per_second)
        people = f"redriven: {redriven.count}" + (
            "" if redriven.last_at is None else f", the last due {shown(redriven.last_at)}"
        )
        call.tell(document_of(redriven, whole=True), lambda: typer.echo(people))
        return
    for flag, value in filters.items():
        if value is not None:
            raise typer.BadParameter("goes with --all only", param_hint=flag)
    _tell(call, await call.client.redrive(job), "redriven")


def _tell(call: Call, job: Job, done: str, *, waiting: str | None = None) -> None:
    """Say what became of the job. `waiting`: what it is while a worker holds it."""

    def people() -> None:
        if waiting is not None and job.state is JobState.CLAIMED:
            typer.echo(f"{job.job_id}: {job.lease_owner} runs it; {waiting}")
        else:
            typer.echo(f"{done} {job.job_id}")

    call.tell(job_document(job), people)
