"""Jobs and their history as commands show them: as tables for people, as the API's documents for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from datetime import timezone as tz
from typing import Any

from ringcron.cli.tables import print_fields, print_table
from ringcron.client import Cron, Every, Job, Preview, Run, Schedule, Skip
from ringcron.client.values import document_of
from ringcron.cron import Zone, known_zone
from ringcron.durations import format_duration


def job_document(job: Job, *, with_payload: bool = True) -> dict[str, Any]:
    """A job as the API shows it: of schedule and runAt the one that it has."""
    document = document_of(job, whole=True)
    document = {
        name: value for name, value in document.items() if value is not None or name not in ("schedule", "runAt")
    }
    if isinstance(job.schedule, Cron | Every):
        document["schedule"] = document_of(job.schedule)
    if not with_payload:
        del document["payload"]
    return document


def print_jobs(jobs: Sequence[Job]) -> None:
    print_table(
        ["JOB", "STATE", "NEXT RUN", "WHEN", "NAME", "KEY", "HANDLER"],
        [(job.job_id, job.state, job.next_run_at, when(job), job.name, job.key, job.handler) for job in jobs],
        empty="no jobs",
    )


def print_job(job: Job, *, upcoming: Sequence[Any] = ()) -> None:
    print_fields(
        {
            "job": job.job_id,
            "name": job.name,
            "key": job.key,
            "tags": job.tags,
            "state": job.state,
            "why dead": None if job.dead_reason is None else job.dead_reason.splitlines(),
            "why paused": job.pause_reason,
            "paused by": job.paused_by,
            "next run": job.next_run_at,
            "then": tuple(upcoming[1:4]),
            "when": when(job),
            "handler": job.handler,
            "payload": None if job.payload is None else json.dumps(job.payload, ensure_ascii=False),
            "occurrence": job.scheduled_for,
            "attempt": f"{job.attempt} of {job.retry.max_attempts}",
            "run": job.run_id,
            "worker": job.lease_owner,
            "lease until": job.lease_until,
            "timeout": None if job.timeout is None else format_duration(job.timeout),
            "alert after late": None if job.alert_after_late is None else format_duration(job.alert_after_late),
            "alert if no success for": None
            if job.alert_if_no_success_for is None
            else format_duration(job.alert_if_no_success_for),
            "overlap": job.overlap,
            "catch-up": job.catchup,
            "jitter": format_duration(job.jitter) if job.jitter else None,
            "on exhausted": job.on_exhausted if job.schedule is not None else None,
            "slot": job.slot,
            "created": job.created_at,
            "changed": job.updated_at if job.updated_at != job.created_at else None,
        }
    )


def print_runs(runs: Sequence[Run]) -> None:
    print_table(
        ["STARTED", "OUTCOME", "ATTEMPT", "TOOK", "CAUSE", "WORKER", "ERROR OR RESULT", "SCHEDULED FOR", "RUN"],
        [
            (
                run.started_at,
                run.outcome or "running",
                run.attempt,
                None if run.finished_at is None else _took(run.finished_at - run.started_at),
                run.cause,
                run.worker_id,
                _said(run),
                run.scheduled_for,
                run.run_id,
            )
            for run in runs
        ],
        empty="no runs",
    )


def print_skips(skips: Sequence[Skip]) -> None:
    print_table(
        ["FROM", "TO", "TICKS", "REASON"],
        [(skip.first, skip.last, skip.count, skip.reason) for skip in skips],
        empty="no skips",
    )


def print_preview(preview: Preview, timezone: str | None) -> None:
    """The ticks, in UTC and, where `timezone` is given, as its clocks show them."""
    marks = {mark.at: mark.mark for mark in preview.marks}
    try:
        zone = None if timezone is None else known_zone(timezone)
    except KeyError:  # the API knows it, by a newer tz database
        zone = None
    local = [] if zone is None else [f"IN {zone.name}"]
    print_table(
        ["TICK", *local, "REMARK"],
        [(tick, *([] if zone is None else [_on_clocks(tick, zone)]), marks.get(tick)) for tick in preview.next_runs],
        empty="no ticks",
    )


def _on_clocks(at: datetime, zone: Zone) -> str:
    offset = zone.offset(math.floor(at.timestamp() / 60))
    return at.astimezone(tz(timedelta(minutes=offset))).isoformat(" ", "seconds")


def when(job: Job) -> str:
    """The schedule, or the instant of a one-off, in a few words."""
    if job.run_at is not None:
        return "once"
    return schedule_text(job.schedule)


def schedule_text(schedule: Schedule | None) -> str:
    match schedule:
        case Cron():
            return f"{schedule.expression} ({schedule.timezone})"
        case Every():
            return f"every {format_duration(schedule.interval)}"
    return "" if schedule is None else json.dumps(schedule, ensure_ascii=False)


def _took(duration: timedelta) -> str:
    return f"{duration.total_seconds():.3f} s"


def _said(run: Run) -> str | None:
    if run.error is not None:
        return (run.error.splitlines() or [""])[0]  # what it was; causes and frames stand below
    return None if run.result is None else json.dumps(run.result, ensure_ascii=False)
