"""From what a caller says of a job to its definition: pure.

Invariant: a create and a patch read the same fields by the same rules.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from ringcron.errors import ScheduleError
from ringcron.models import Catchup, Definition, OnExhausted, Overlap, RetryPolicy
from ringcron.schedule import Schedule, parse_schedule, schedule_faults, tzdata_version
from ringcron.traceparent import CallTrace
from ringcron_api.faults import Fault
from ringcron_api.problems import Problem
from ringcron_api.schemas import Settable

PAYLOAD_LIMIT: Final = 256 * 1024
"""Bytes of a payload as compact JSON."""


def definition_of(
    request: Settable, schedule: Schedule | None, *, key: str | None, trace: CallTrace | None = None
) -> Definition:
    """The definition that a sound request asks for; `schedule` is its schedule, read."""
    retry = request.retry
    return Definition(
        handler=request.handler,
        payload=request.payload,
        schedule=None if schedule is None else schedule.document,
        run_at=request.run_at,
        key=key,
        name=request.name,
        tags=tuple(request.tags),
        retry=RetryPolicy(
            max_attempts=retry.max_attempts,
            min_backoff_seconds=retry.min_backoff.total_seconds(),
            max_backoff_seconds=retry.max_backoff.total_seconds(),
            multiplier=retry.multiplier,
            max_lost=retry.max_lost,
        ),
        timeout_seconds=_seconds(request.timeout),
        alert_after_late_seconds=_seconds(request.alert_after_late),
        alert_if_no_success_seconds=_seconds(request.alert_if_no_success_for),
        overlap=Overlap(request.overlap),
        catchup=Catchup(request.catchup),
        catchup_window_seconds=request.catchup_window.total_seconds(),
        jitter_seconds=request.jitter.total_seconds(),
        on_exhausted=OnExhausted(request.on_exhausted),
        tzdata=None if schedule is None else tzdata_version(),
        traceparent=None if trace is None else trace.traceparent,
        tracestate=None if trace is None else trace.tracestate,
    )


def read_schedule(given: Any, now: datetime) -> tuple[Schedule | None, list[Fault]]:
    """The schedule that a caller gave, or every fault in it."""
    if isinstance(given, dict) and isinstance(given.get("maxRuns"), float) and given["maxRuns"].is_integer():
        given = {**given, "maxRuns": int(given["maxRuns"])}  # 5.0 is a whole number in JSON
    try:
        return parse_schedule(given, created_at=now), []
    except ScheduleError:
        faults = schedule_faults(given, created_at=now)
    return None, [Fault(pointer=f"/schedule{fault.pointer}", code=fault.code, detail=str(fault)) for fault in faults]


def refuse_large_payload(payload: Any) -> None:
    """Raises Problem `payload-too-large`."""
    size = len(orjson.dumps(payload))
    if size > PAYLOAD_LIMIT:
        raise Problem("payload-too-large", f"/payload has {size} bytes as compact JSON; {PAYLOAD_LIMIT} are accepted")


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
