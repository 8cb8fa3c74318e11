"""PATCH /jobs/{jobId}: a merge patch (RFC 7396) over what a caller may say of a job. Pure, given the job as it stands.

Invariant: what a patch does not name stays as it is stored, readable or not; what it names is read by the rules of a
create, after the merge. Null takes a field back to its default. All faults are found before anything is changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from ringcron import changes
from ringcron.changes import Change
from ringcron.errors import ScheduleError
from ringcron.instants import format_instant
from ringcron.models import Definition, Job
from ringcron.schedule import Schedule, parse_schedule
from ringcron_api.answers import job_answer
from ringcron_api.definitions import definition_of, read_schedule, refuse_large_payload
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.schemas import PATCH_NAMES, PatchJob, read

_FIELDS: Final[Mapping[str, str]] = {
    "runAt": "run_at",
    "schedule": "schedule",
    "payload": "payload",
    "handler": "handler",
    "name": "name",
    "tags": "tags",
    "retry": "retry",
    "timeout": "timeout_seconds",
    "alertAfterLate": "alert_after_late_seconds",
    "alertIfNoSuccessFor": "alert_if_no_success_seconds",
    "overlap": "overlap",
    "catchup": "catchup",
    "catchupWindow": "catchup_window_seconds",
    "jitter": "jitter_seconds",
    "onExhausted": "on_exhausted",
}
"""The name on the wire → the field of the definition."""
_FIXED: Final = {
    "key": "is fixed when a job is created: delete this one and create another",
    "onConflict": "belongs to the creation of a job",
}


def decide_patch(
    document: Any, held_back: list[Fault], job: Job, now: datetime, *, after_current: bool, by: str | None
) -> Change:
    """The change that a body asks for. `held_back`: what the JSON reader found in it already.

    Raises ValidationFailed with every fault, Problem `payload-too-large`, and what ringcron.changes raises.
    """
    patch = document if isinstance(document, dict) else {}
    merged = _merged(patch, job)
    request, faults = read(
        PatchJob, merged if isinstance(document, dict) else document, known=PATCH_NAMES, place="body"
    )
    schedule, between = _schedule(patch, merged, job, now)
    faults = [*held_back, *_fixed(patch), *faults, *between, *_pause_faults(patch)]
    if faults or request is None:
        raise ValidationFailed(faults)
    if "payload" in patch:
        refuse_large_payload(request.payload)
    asked = definition_of(request, schedule, key=job.definition.key)
    change = None
    if patch.keys() & _FIELDS.keys() or "paused" not in patch:
        definition = _replaced(job.definition, asked, patch)
        change = changes.patch(job, definition, now, after_current=after_current)
        job = change.job
    if "paused" not in patch:
        assert change is not None
        return change
    pausing = (
        changes.pause(job, now, reason=request.pause_reason, by=by) if request.paused else changes.resume(job, now)
    )
    return pausing if change is None else changes.followed_by(change, pausing)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def _merged(patch: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """The fields that the patch names, after the merge; those that it takes back are not there."""
    shown = job_answer(job)
    if "payload" in patch:
        shown["payload"] = orjson.loads(orjson.dumps(shown["payload"]))
    shown = {name: value for name, value in shown.items() if name in _FIELDS and name in patch}
    merged: dict[str, Any] = merge_patch(shown, patch)
    return {name: value for name, value in merged.items() if name not in _FIXED}


def _schedule(
    patch: Mapping[str, Any], merged: Mapping[str, Any], job: Job, now: datetime
) -> tuple[Schedule | None, list[Fault]]:
    """The schedule that the patch leaves, where it names one, and the faults in it and beside it."""
    if not patch.keys() & {"runAt", "schedule"}:
        return None, []
    old = job.definition
    has_run_at = merged.get("runAt") is not None if "runAt" in patch else old.run_at is not None
    has_schedule = merged.get("schedule") is not None if "schedule" in patch else old.schedule is not None
    faults = []
    if has_run_at == has_schedule:
        detail = "must leave exactly one of runAt and schedule: set the other one to null"
        if not has_run_at:
            detail = "must leave one of runAt and schedule: give the other one"
        faults.append(Fault(pointer="", code="invalid" if has_run_at else "required", detail=detail))
    given = merged.get("schedule")
    if given is None:
        return None, faults
    if isinstance(given, dict) and given.get("every") is not None and given.get("anchor") is None:
        given = {**given, "anchor": format_instant(job.created_at)}
    schedule = _same(given, old)
    if schedule is not None:
        return schedule, faults
    schedule, in_schedule = read_schedule(given, now)
    return schedule, [*faults, *in_schedule]


def _same(given: Any, old: Definition) -> Schedule | None:
    """The schedule that the job has already, where it is given once more: it may have fired its last by now."""
    try:
        schedule = parse_schedule(given)
    except ScheduleError:
        return None
    return schedule if schedule.document == old.schedule else None


def _replaced(old: Definition, asked: Definition, patch: Mapping[str, Any]) -> Definition:
    named = {field: getattr(asked, field) for name, field in _FIELDS.items() if name in patch}
    definition = dataclasses.replace(old, **named)
    if definition.schedule == old.schedule:
        return definition
    return dataclasses.replace(definition, tzdata=asked.tzdata)


def _fixed(patch: Mapping[str, Any]) -> list[Fault]:
    return [Fault(pointer=f"/{name}", code="read-only", detail=why) for name, why in _FIXED.items() if name in patch]


def _pause_faults(patch: Mapping[str, Any]) -> list[Fault]:
    if patch.get("pauseReason") is None or patch.get("paused") is True:
        return []
    detail = 'says why a job is paused: send "paused": true with it'
    return [Fault(pointer="/pauseReason", code="invalid", detail=detail)]
