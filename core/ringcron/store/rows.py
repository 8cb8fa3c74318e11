"""Rows as the API shows them.

Invariant: one row that cannot be understood spoils no page. JSON that is only passed on (payload, result) stays the
text that PostgreSQL wrote, as an orjson.Fragment; a schedule that is no JSON object is shown as {"unreadable": …}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import orjson

from ringcron.models import (
    Arc,
    Catchup,
    Cause,
    Definition,
    Job,
    JobState,
    OnExhausted,
    Overlap,
    RetryPolicy,
    Run,
    RunOutcome,
    Slice,
    WorkerReport,
)

UNREADABLE: Final = "unreadable"
WITHOUT_NEXT_RUN: Final = frozenset({JobState.PAUSED, JobState.DONE, JobState.CANCELLED, JobState.DEAD})
"""States in which a job has no next run, whatever its row says."""


def job_from_row(row: Mapping[str, Any]) -> Job:
    """A job from the columns of get_job.sql or list_jobs.sql."""
    state = JobState(row["state"])
    return Job(
        id=row["id"],
        slot=row["slot"],
        state=state,
        definition=_definition(row),
        next_run_at=None if state in WITHOUT_NEXT_RUN else row["next_run_at"],
        scheduled_for=row["scheduled_for"],
        cause=Cause(row["cause"]),
        attempt=row["attempt"],
        lost=row["lost"],
        occurrences=row["occurrences"],
        decided_until=row["decided_until"],
        kept=None if row["kept"] is None else tuple(row["kept"]),
        lease_owner=row["lease_owner"],
        lease_until=row["lease_until"],
        lease_generation=row["lease_generation"],
        claimed_at=row["claimed_at"],
        cancel_requested=row["cancel_requested"],
        after_current=document_of(row["after_current"]),
        revision=row["revision"],
        pause_reason=row["pause_reason"],
        paused_by=row["paused_by"],
        dead_reason=row["dead_reason"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _definition(row: Mapping[str, Any]) -> Definition:
    return Definition(
        handler=row["handler"],
        payload=passed_on(row["payload"]),
        schedule=document_of(row["schedule"]),
        run_at=row["run_at"],
        key=row["key"],
        name=row["name"],
        tags=tuple(row["tags"]),
        retry=RetryPolicy(
            max_attempts=row["max_attempts"],
            min_backoff_seconds=row["min_backoff_seconds"],
            max_backoff_seconds=row["max_backoff_seconds"],
            multiplier=row["backoff_multiplier"],
            max_lost=row["max_lost"],
        ),
        timeout_seconds=row["timeout_seconds"],
        overlap=Overlap(row["overlap"]),
        catchup=Catchup(row["catchup"]),
        catchup_window_seconds=row["catchup_window_seconds"],
        jitter_seconds=row["jitter_seconds"],
        on_exhausted=OnExhausted(row["on_exhausted"]),
        tzdata=row["tzdata"],
        alert_after_late_seconds=row["alert_after_late_seconds"],
        alert_if_no_success_seconds=row["alert_if_no_success_seconds"],
    )


def run_from_row(job_id: UUID, row: Mapping[str, Any]) -> Run:
    """A run from the columns of list_runs.sql."""
    return Run(
        job_id=job_id,
        lease_generation=row["lease_generation"],
        attempt=row["attempt"],
        scheduled_for=row["scheduled_for"],
        cause=Cause(row["cause"]),
        worker_id=row["worker_id"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        outcome=None if row["outcome"] is None else RunOutcome(row["outcome"]),
        error=row["error"],
        result=passed_on(row["result"]),
    )


def worker_from_row(row: Mapping[str, Any]) -> WorkerReport:
    """A worker's report from the columns of list_workers.sql."""
    return WorkerReport(
        worker_id=row["worker_id"],
        name=row["name"],
        capacity=row["capacity"],
        running=row["running"],
        handlers=tuple(row["handlers"]),
        version=row["version"],
        tzdata=row["tzdata"],
        epoch=row["epoch"],
        draining=row["draining"],
        slices=tuple(
            Slice(handlers=tuple(held["handlers"]), arcs=tuple(Arc(lo=lo, hi=hi) for lo, hi in held["arcs"]))
            for held in row["slices"]
        ),
        report_seconds=row["report_seconds"],
        age_seconds=row["age_seconds"],
        drain_asked_by=row["drain_asked_by"],
        mean_seconds=row["mean_seconds"],
    )


def passed_on(text: str | None) -> orjson.Fragment | None:
    """JSON text to be written into an answer as it is, undecoded."""
    return None if text is None else orjson.Fragment(text)


def document_of(text: str | None) -> Mapping[str, Any] | None:
    """The JSON object in a column; what is none comes as {"unreadable": …}."""
    if text is None:
        return None
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {UNREADABLE: text}
    return document if isinstance(document, dict) else {UNREADABLE: text}
