"""Values for unit tests: whole ones, of which a test names what it is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ringcron.models import Cause, Definition, Job, JobState, WorkerReport

INSTANT = datetime(2027, 1, 1, tzinfo=UTC)


def job_of(**columns: Any) -> Job:
    """A due one-off."""
    values: dict[str, Any] = {
        "id": UUID("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e"),
        "slot": 7,
        "state": JobState.DUE,
        "definition": Definition(handler="log", payload=None, run_at=INSTANT),
        "next_run_at": INSTANT,
        "scheduled_for": INSTANT,
        "cause": Cause.SCHEDULE,
        "attempt": 0,
        "lost": 0,
        "occurrences": 0,
        "decided_until": INSTANT,
        "kept": None,
        "lease_owner": None,
        "lease_until": None,
        "lease_generation": 0,
        "claimed_at": None,
        "cancel_requested": False,
        "after_current": None,
        "revision": 1,
        "pause_reason": None,
        "paused_by": None,
        "dead_reason": None,
        "created_at": INSTANT,
        "updated_at": INSTANT,
    }
    return Job(**(values | columns))


def report_of(worker_id: str, **columns: Any) -> WorkerReport:
    """A worker that reported itself and holds nothing."""
    values: dict[str, Any] = {
        "worker_id": worker_id,
        "name": worker_id.partition(".")[0],
        "capacity": 10,
        "running": 0,
        "handlers": ("log",),
        "version": "0.1.0",
        "tzdata": "2026.3",
        "epoch": 1,
        "draining": False,
        "slices": (),
    }
    return WorkerReport(**(values | columns))
