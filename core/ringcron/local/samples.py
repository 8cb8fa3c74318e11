"""A few small jobs that show a newcomer something moving."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ringcron.local.errors import LocalServerError
from ringcron.local.rest import Rest


def sample_jobs(now: datetime) -> list[dict[str, Any]]:
    """A one-off, an interval and a cron job. Their keys let them be put in again without becoming more."""
    soon = (now + timedelta(seconds=5)).isoformat().replace("+00:00", "Z")
    return [
        {
            "key": "sample-once",
            "name": "A one-off, five seconds after the first start",
            "runAt": soon,
            "handler": "log",
            "payload": {"message": "hello, once"},
            "tags": ["sample"],
        },
        {
            "key": "sample-every-20-seconds",
            "name": "Every 20 seconds",
            "schedule": {"every": "PT20S"},
            "handler": "log",
            "payload": {"message": "another 20 seconds have gone"},
            "tags": ["sample"],
        },
        {
            "key": "sample-every-minute",
            "name": "Every minute, by cron",
            "schedule": {"cron": "* * * * *", "timezone": "UTC"},
            "handler": "log",
            "payload": {"message": "a new minute"},
            "tags": ["sample"],
        },
    ]


def put_in(rest: Rest, now: datetime) -> None:
    """Create the sample jobs that are not there yet. Raises LocalServerError where the API refuses one."""
    for job in sample_jobs(now):
        status, answer = rest.call("POST", "/jobs", {**job, "onConflict": "keep"})
        if status not in (200, 201):
            raise LocalServerError(f"the API refused the sample job {job['key']}: {status} {answer}")
