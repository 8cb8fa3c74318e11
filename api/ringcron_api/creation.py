"""From the body of POST /jobs to a job that can be stored: pure, given the database's now.

Invariant: all faults of a body are found before anything is stored, and what is stored has every value fixed. The first
tick is strictly later than now, so nothing before creation is caught up; an instant in the past is due now.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from ringcron.errors import ScheduleError
from ringcron.going import jitter_of
from ringcron.models import Job, JobState
from ringcron.schedule import Schedule, parse_schedule
from ringcron.slots import new_job_id
from ringcron.store.creating import Creation, OnConflict
from ringcron.traceparent import CallTrace
from ringcron_api.definitions import definition_of, read_schedule, refuse_large_payload
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.schemas import JOB_NAMES, CreateJob, read

SHOWN_RUNS: Final = 10


def read_creation(document: Any, held_back: list[Fault], now: datetime, trace: CallTrace | None = None) -> Creation:
    """The job that a body asks for. `held_back`: what the JSON reader found in it already. `trace`: the call's.

    Raises ValidationFailed with every fault, and Problem `payload-too-large`.
    """
    request, faults = read(CreateJob, document, known=JOB_NAMES, place="body")
    schedule: Schedule | None = None
    if isinstance(document, dict):
        faults += _between_fields(document)
        given = document.get("schedule")
        if given is not None:
            schedule, in_schedule = read_schedule(given, now)
            faults += in_schedule
    if held_back or faults or request is None:
        raise ValidationFailed([*held_back, *faults])
    refuse_large_payload(request.payload)
    first = request.run_at if schedule is None else schedule.next_after(now)
    assert first is not None  # a schedule without a tick was refused
    return Creation(
        id=new_job_id(now),
        common=definition_of(request, schedule, key=request.key, trace=trace),
        run_at=request.run_at,
        key=request.key,
        payload=request.payload,
        created_at=now,
        scheduled_for=first,
        on_conflict=OnConflict(request.on_conflict),
    )


def _between_fields(document: dict[str, Any]) -> list[Fault]:
    """What each field by itself cannot show."""
    faults = []
    given = [name for name in ("runAt", "schedule") if document.get(name) is not None]
    if len(given) != 1:
        code = "invalid" if given else "required"
        faults.append(Fault(pointer="", code=code, detail="must have exactly one of runAt and schedule"))
    if document.get("onConflict") is not None and document.get("key") is None:
        faults.append(
            Fault(pointer="/onConflict", code="invalid", detail="says what to do with a key, and there is none")
        )
    return faults


def next_runs(job: Job, now: datetime) -> list[datetime]:
    """When a job will run next, at most SHOWN_RUNS instants; none where it will not or its schedule cannot be read."""
    if job.state not in (JobState.DUE, JobState.CLAIMED):
        return []
    if job.definition.schedule is None:
        return [job.next_run_at] if job.state is JobState.DUE and job.next_run_at is not None else []
    try:
        schedule = parse_schedule(job.definition.schedule)
        left = SHOWN_RUNS if schedule.max_runs is None else max(0, schedule.max_runs - job.occurrences)
        jitter = jitter_of(job.id.bytes, job.definition.jitter_seconds)
        return [tick + jitter for tick in schedule.upcoming(now, min(SHOWN_RUNS, left))]
    except ScheduleError:
        return []
