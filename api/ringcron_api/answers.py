"""What the API shows, in camelCase: instants in UTC with `Z`, durations in ISO 8601, ids as text.

Invariant: a value of the store becomes an answer here and nowhere else. `shapes` describes these answers in the OpenAPI
document, and the tests hold every answer against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from pydantic.alias_generators import to_camel

from ringcron.durations import LONGEST, format_duration
from ringcron.explain import Explanation
from ringcron.instants import format_instant
from ringcron.models import Definition, Job, JobState, RetryPolicy, Run, Skip, WorkerReport
from ringcron.store.audit import AuditEntry


def job_answer(job: Job, *, with_payload: bool = True) -> dict[str, Any]:
    """A job. Lease fields and runId are null unless it is claimed; of schedule and runAt only the one that it has."""
    definition = job.definition
    claimed = job.state is JobState.CLAIMED
    return {
        "jobId": str(job.id),
        "key": definition.key,
        "name": definition.name,
        "tags": definition.tags,
        "handler": definition.handler,
        "state": job.state.value,
        **_when(definition),
        **({"payload": definition.payload} if with_payload else {}),
        "nextRunAt": _instant(job.next_run_at),
        "scheduledFor": format_instant(job.scheduled_for),
        "attempt": job.attempt,
        "slot": job.slot,
        "leaseOwner": job.lease_owner if claimed else None,
        "leaseUntil": _instant(job.lease_until) if claimed else None,
        "leaseGeneration": job.lease_generation if claimed else None,
        "runId": run_id(job.id, job.lease_generation) if claimed else None,
        "pauseReason": job.pause_reason,
        "pausedBy": job.paused_by,
        "deadReason": job.dead_reason,
        "retry": _retry(definition.retry),
        "timeout": _duration_or_null(definition.timeout_seconds),
        "alertAfterLate": _duration_or_null(definition.alert_after_late_seconds),
        "alertIfNoSuccessFor": _duration_or_null(definition.alert_if_no_success_seconds),
        "overlap": definition.overlap.value,
        "catchup": definition.catchup.value,
        "catchupWindow": duration_text(definition.catchup_window_seconds),
        "jitter": duration_text(definition.jitter_seconds),
        "onExhausted": definition.on_exhausted.value,
        "createdAt": format_instant(job.created_at),
        "updatedAt": format_instant(job.updated_at),
    }


def created_answer(job: Job, next_runs: Sequence[datetime]) -> dict[str, Any]:
    """A job that was just created, kept or replaced, and when it will run next."""
    return {**job_answer(job), "nextRuns": [format_instant(instant) for instant in next_runs]}


def run_answer(run: Run) -> dict[str, Any]:
    """One attempt; finishedAt and outcome are null while it is in progress."""
    return {
        "runId": run_id(run.job_id, run.lease_generation),
        "attempt": run.attempt,
        "scheduledFor": format_instant(run.scheduled_for),
        "cause": run.cause.value,
        "workerId": run.worker_id,
        "leaseGeneration": run.lease_generation,
        "startedAt": format_instant(run.started_at),
        "finishedAt": _instant(run.finished_at),
        "outcome": None if run.outcome is None else run.outcome.value,
        "error": run.error,
        "result": run.result,
    }


def skip_answer(skip: Skip) -> dict[str, Any]:
    """Ticks that were deliberately not run, both ends included."""
    return {
        "from": format_instant(skip.first),
        "to": format_instant(skip.last),
        "count": skip.count,
        "reason": skip.reason.value,
    }


def audit_answer(entry: AuditEntry) -> dict[str, Any]:
    """What a caller did to a job; no keyId where no key was needed."""
    act = entry.act
    return {
        "at": format_instant(entry.at),
        "action": act.action.value,
        "keyId": act.key_id,
        "keyName": act.key_name,
        "requestId": act.request_id,
        "detail": act.detail,
    }


def worker_answer(worker: WorkerReport) -> dict[str, Any]:
    """What a worker last said of itself."""
    return {
        "workerId": worker.worker_id,
        "name": worker.name,
        "capacity": worker.capacity,
        "running": worker.running,
        "handlers": worker.handlers,
        "version": worker.version,
        "tzdata": worker.tzdata,
        "epoch": worker.epoch,
        "draining": worker.draining,
    }


def explanation_answer(job: Job, explanation: Explanation, now: datetime) -> dict[str, Any]:
    """Why a job has not run yet, at `now`."""
    return {
        "jobId": str(job.id),
        "state": job.state.value,
        "code": explanation.reason.value,
        "sentence": explanation.sentence,
        "fields": {
            to_camel(name): format_instant(value) if isinstance(value, datetime) else value
            for name, value in explanation.fields.items()
        },
        "takenAt": format_instant(now),
    }


def run_id(job_id: object, lease_generation: int) -> str:
    """`<jobId>.<leaseGeneration>`."""
    return f"{job_id}.{lease_generation}"


@lru_cache(maxsize=1000)
def duration_text(seconds: float) -> str:
    """ISO 8601. A stored number that no duration can be (negative, infinite) is shown as the nearest one that can."""
    if not seconds > 0:  # NaN too
        return format_duration(timedelta(0))
    return format_duration(min(timedelta(seconds=min(seconds, LONGEST.total_seconds())), LONGEST))


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)


def _duration_or_null(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)


def _when(definition: Definition) -> Mapping[str, Any]:
    if definition.run_at is not None:
        return {"runAt": format_instant(definition.run_at)}
    return {"schedule": definition.schedule}


def _retry(retry: RetryPolicy) -> Mapping[str, Any]:
    return {
        "maxAttempts": retry.max_attempts,
        "minBackoff": duration_text(retry.min_backoff_seconds),
        "maxBackoff": duration_text(retry.max_backoff_seconds),
        "multiplier": retry.multiplier,
        "maxLost": retry.max_lost,
    }
