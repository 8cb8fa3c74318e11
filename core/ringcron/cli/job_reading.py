"""`ringcron job list | show | runs | skips | explain`: what there is, what became of it, and why not yet."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal, TypeVar

import typer

from ringcron.cli.api_call import Call
from ringcron.cli.flags import All, AnyJob, Limit, instant_flag, text_flag
from ringcron.cli.job_views import job_document, print_job, print_jobs, print_runs, print_skips
from ringcron.cli.tables import shown
from ringcron.client import JobState, Listing
from ringcron.client.values import document_of

T = TypeVar("T")
LARGEST_PAGE: Final = 500


async def list_jobs(
    call: Call,
    state: Annotated[JobState | None, typer.Option(help="Only jobs of this state.")] = None,
    tag: Annotated[str | None, text_flag("Only jobs with this tag.")] = None,
    handler: Annotated[str | None, text_flag("Only jobs of this handler.", metavar="NAME")] = None,
    name: Annotated[str | None, text_flag("Only jobs of this name.")] = None,
    due_before: Annotated[datetime | None, instant_flag("Only jobs that run next before it.")] = None,
    due_after: Annotated[datetime | None, instant_flag("Only jobs that run next at it or later.")] = None,
    order: Annotated[Literal["newest", "next-run"], typer.Option(help="Which come first.")] = "newest",
    payload: Annotated[bool, typer.Option("--payload", help="With --json: show payloads too.")] = False,
    limit: Limit = 50,
    all_: All = False,
) -> None:
    """List jobs."""
    found = call.client.list_jobs(
        state=state,
        tag=tag,
        handler=handler,
        name=name,
        due_before=due_before,
        due_after=due_after,
        order="next_run_at" if order == "next-run" else "job_id",
        include_payload=payload,
        page_size=_page_size(limit, all_),
    )
    jobs = await _taken(found, limit, all_)
    call.tell([job_document(job, with_payload=payload) for job in jobs], lambda: print_jobs(jobs))


async def show_job(call: Call, job: AnyJob) -> None:
    """Show a job, its payload included."""
    found = await call.client.get_job(job)
    call.tell(job_document(found), lambda: print_job(found))


async def list_runs(call: Call, job: AnyJob, limit: Limit = 50, all_: All = False) -> None:
    """List the runs of a job, newest first."""
    runs = await _taken(call.client.runs(job, page_size=_page_size(limit, all_)), limit, all_)
    call.tell([document_of(run, whole=True) for run in runs], lambda: print_runs(runs))


async def list_skips(call: Call, job: AnyJob, limit: Limit = 50, all_: All = False) -> None:
    """List the ticks of a job that were deliberately not run, and why."""
    skips = await _taken(call.client.skips(job, page_size=_page_size(limit, all_)), limit, all_)
    call.tell([document_of(skip, whole=True) for skip in skips], lambda: print_skips(skips))


async def _taken(listing: Listing[T], limit: int, everything: bool) -> list[T]:
    """The first `limit` elements; a person is told where there are more."""
    taken: list[T] = []
    async for element in listing:
        if not everything and len(taken) == limit:
            typer.echo(f"there are more than {limit}: --limit N, or --all", err=True)
            break
        taken.append(element)
    return taken


def _page_size(limit: int, everything: bool) -> int:
    """One more than is shown, to know whether there are more."""
    return LARGEST_PAGE if everything else min(LARGEST_PAGE, limit + 1)


async def explain_job(call: Call, job: AnyJob) -> None:
    """Say why a job has not run yet."""
    explanation = await call.client.explain(job)
    call.tell(document_of(explanation, whole=True), lambda: typer.echo(shown(explanation.sentence)))
