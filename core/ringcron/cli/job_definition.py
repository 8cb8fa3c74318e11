"""`ringcron job add` and `ringcron job preview`: when a job is to run, and what."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

import typer

from ringcron.cli.api_call import Call
from ringcron.cli.flags import duration_flag, instant_flag, number_flag, payload_flag, text_flag
from ringcron.cli.job_schedule import (
    Anchor,
    At,
    CronFlag,
    EndAt,
    EveryFlag,
    In,
    MaxRuns,
    StartAt,
    Timezone,
    one_of,
    schedule_from,
)
from ringcron.cli.job_views import job_document, print_job, print_preview
from ringcron.client import Catchup, NewJob, OnExhausted, Overlap, Retry
from ringcron.client.values import document_of


async def add_job(
    call: Call,
    in_: In = None,
    at: At = None,
    cron: CronFlag = None,
    every: EveryFlag = None,
    timezone: Timezone = None,
    anchor: Anchor = None,
    start_at: StartAt = None,
    end_at: EndAt = None,
    max_runs: MaxRuns = None,
    payload: Annotated[Any, payload_flag("What the handler is given; @- is standard input.")] = None,
    handler: Annotated[str | None, text_flag("Who runs it: only workers that have it.", metavar="NAME")] = None,
    name: Annotated[str | None, text_flag("For people and filters.")] = None,
    tag: Annotated[list[str] | None, text_flag("For filters; repeatable.")] = None,
    key: Annotated[str | None, text_flag("Unique: no second job gets it.")] = None,
    on_conflict: Annotated[
        Literal["error", "keep", "replace"] | None, typer.Option(help="When the key is taken; default error.")
    ] = None,
    max_attempts: Annotated[int | None, number_flag("Tries of one occurrence; default 5.")] = None,
    min_backoff: Annotated[timedelta | None, duration_flag("Before the second try; default 5s.")] = None,
    max_backoff: Annotated[timedelta | None, duration_flag("Between tries at most; default 1h.")] = None,
    multiplier: Annotated[float | None, typer.Option(metavar="X", help="Of the back-off; default 2.")] = None,
    max_lost: Annotated[int | None, number_flag("Dead after so many lost workers in a row; default 3.")] = None,
    timeout: Annotated[timedelta | None, duration_flag("Of one attempt; default none.")] = None,
    alert_after_late: Annotated[
        timedelta | None, duration_flag("Alert where a run has not started so long after it was due.")
    ] = None,
    alert_if_no_success_for: Annotated[
        timedelta | None, duration_flag("Alert where no run has succeeded for so long.")
    ] = None,
    overlap: Annotated[Overlap | None, typer.Option(help="Ticks while an occurrence is going; default skip.")] = None,
    catchup: Annotated[Catchup | None, typer.Option(help="Missed ticks; default latest.")] = None,
    catchup_window: Annotated[timedelta | None, duration_flag("Older ticks are never caught up; default 365d.")] = None,
    jitter: Annotated[timedelta | None, duration_flag("Later by a fixed part of this; default 0s.")] = None,
    on_exhausted: Annotated[
        OnExhausted | None, typer.Option(help="When an occurrence has used up its attempts; default continue.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be created, and create nothing.")] = False,
) -> None:
    """Schedule a job, once or at each tick of a schedule."""
    one_of(**{"in": in_, "at": at, "cron": cron, "every": every})
    schedule = schedule_from(
        cron=cron,
        timezone=timezone,
        every=every,
        anchor=anchor,
        start_at=start_at,
        end_at=end_at,
        max_runs=max_runs,
    )
    retry = Retry(
        max_attempts=max_attempts,
        min_backoff=min_backoff,
        max_backoff=max_backoff,
        multiplier=multiplier,
        max_lost=max_lost,
    )
    new = NewJob(
        run_at=at if in_ is None else await call.client.now() + in_,
        schedule=schedule,
        payload=payload,
        handler=handler,
        key=key,
        on_conflict=on_conflict,
        name=name,
        tags=tuple(tag) if tag else None,
        retry=None if retry == Retry() else retry,
        timeout=timeout,
        alert_after_late=alert_after_late,
        alert_if_no_success_for=alert_if_no_success_for,
        overlap=overlap,
        catchup=catchup,
        catchup_window=catchup_window,
        jitter=jitter,
        on_exhausted=on_exhausted,
    )
    job = await call.client.create_job(new, dry_run=dry_run)
    document = {**job_document(job), "nextRuns": document_of(job)["nextRuns"]}
    call.tell(document, lambda: print_job(job, upcoming=job.next_runs))


async def preview_schedule(
    call: Call,
    expression: Annotated[
        str | None, typer.Argument(metavar="EXPR", help="A cron expression in quotes, as with --cron.")
    ] = None,
    cron: CronFlag = None,
    every: EveryFlag = None,
    timezone: Timezone = None,
    anchor: Anchor = None,
    start_at: StartAt = None,
    end_at: EndAt = None,
    max_runs: MaxRuns = None,
    after: Annotated[Any, instant_flag("Ticks after this instant; default now.")] = None,
    count: Annotated[int | None, number_flag("How many ticks; default 10.")] = None,
) -> None:
    """Show when a schedule would tick, and where a change of the clocks moves it."""
    if expression is not None and cron is not None:
        raise typer.BadParameter("is given already as --cron", param_hint="EXPR")
    cron = cron if expression is None else expression
    one_of(cron=cron, every=every)
    schedule = schedule_from(
        cron=cron,
        timezone=timezone,
        every=every,
        anchor=anchor,
        start_at=start_at,
        end_at=end_at,
        max_runs=max_runs,
    )
    assert schedule is not None  # one of its flags was given
    preview = await call.client.preview(schedule, after=after, count=count)
    call.tell(document_of(preview, whole=True), lambda: print_preview(preview, timezone))
