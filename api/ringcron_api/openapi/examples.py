"""Bodies and answers that the document shows. The tests post the bodies and hold the answers against the schemas."""

from __future__ import annotations

from typing import Any, Final

_JOB_ID = "019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e"
_RETRY = {"maxAttempts": 5, "minBackoff": "PT5S", "maxBackoff": "PT1H", "multiplier": 2.0, "maxLost": 3}

CREATE_BODIES: Final[dict[str, Any]] = {
    "once": {"runAt": "2027-01-31T09:00:00Z", "payload": {"order": 4711}},
    "cron": {
        "schedule": {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Madrid"},
        "handler": "http",
        "payload": {"url": "https://example.com/report", "method": "POST"},
        "name": "morning report",
        "tags": ["reports"],
        "retry": {"maxAttempts": 3, "minBackoff": "PT30S"},
        "timeout": "PT10M",
        "alertAfterLate": "PT15M",
        "jitter": "PT5M",
    },
    "interval": {
        "schedule": {"every": "PT15M", "anchor": "2027-01-01T00:00:00Z", "endAt": "2027-02-01T00:00:00Z"},
        "overlap": "buffer_one",
        "catchup": "all",
        "catchupWindow": "PT6H",
        "onExhausted": "dead",
        "payload": None,
    },
    "keyed": {"runAt": "2027-01-31T09:00:00Z", "key": "invoice-4711", "onConflict": "replace", "payload": {"page": 2}},
}

JOB: Final[dict[str, Any]] = {
    "jobId": _JOB_ID,
    "key": None,
    "name": "morning report",
    "tags": ["reports"],
    "handler": "http",
    "state": "due",
    "schedule": {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Madrid"},
    "payload": {"url": "https://example.com/report", "method": "POST"},
    "nextRunAt": "2027-02-01T08:03:07.25Z",
    "scheduledFor": "2027-02-01T08:00:00Z",
    "attempt": 0,
    "slot": 1234,
    "leaseOwner": None,
    "leaseUntil": None,
    "leaseGeneration": None,
    "runId": None,
    "pauseReason": None,
    "pausedBy": None,
    "deadReason": None,
    "retry": {**_RETRY, "maxAttempts": 3, "minBackoff": "PT30S"},
    "timeout": "PT10M",
    "alertAfterLate": "PT15M",
    "alertIfNoSuccessFor": None,
    "overlap": "skip",
    "catchup": "latest",
    "catchupWindow": "P365D",
    "jitter": "PT5M",
    "onExhausted": "continue",
    "createdAt": "2027-01-29T10:00:00Z",
    "updatedAt": "2027-01-29T10:00:00Z",
}

CREATED: Final[dict[str, Any]] = {**JOB, "nextRuns": ["2027-02-01T08:03:07.25Z", "2027-02-02T08:03:07.25Z"]}

PATCH_BODIES: Final[dict[str, Any]] = {
    "pause": {"paused": True, "pauseReason": "the report's database moves"},
    "resume": {"paused": False},
    "slower": {"schedule": {"cron": "0 9 * * MON"}, "retry": {"maxAttempts": 10}},
    "once": {"schedule": None, "runAt": "2027-03-01T09:00:00Z"},
    "defaults": {"timeout": None, "tags": None, "payload": {"url": "https://example.com/monthly"}},
}

PAUSED: Final[dict[str, Any]] = {
    **JOB,
    "state": "paused",
    "nextRunAt": None,
    "pauseReason": "the report's database moves",
    "pausedBy": "operations (key 4fGhT2xB)",
}

REDRIVEN: Final[dict[str, Any]] = {"count": 120, "lastAt": "2027-02-01T08:02:00Z"}

STOPPING_RUN: Final[dict[str, Any]] = {"runId": f"{_JOB_ID}.2", "workerId": "worker-2.9c41d07e"}

EXPLANATION: Final[dict[str, Any]] = {
    "jobId": _JOB_ID,
    "state": "due",
    "code": "back-off",
    "sentence": "Attempt 1 of 3 did not succeed (HTTP 503); the next one is at 2027-02-01T08:00:32Z, in 21 s.",
    "fields": {
        "nextRunAt": "2027-02-01T08:00:32Z",
        "scheduledFor": "2027-02-01T08:00:00Z",
        "secondsLeft": 21.0,
        "attempt": 1,
        "maxAttempts": 3,
        "error": "HTTP 503",
    },
    "takenAt": "2027-02-01T08:00:11Z",
}

JOB_PAGE: Final[dict[str, Any]] = {
    "items": [{name: value for name, value in JOB.items() if name != "payload"}],
    "nextCursor": "AZ8PB1nm3gGfOlJdLH0OnVwKj288Gy4",
}

RUNS: Final[list[dict[str, Any]]] = [
    {
        "runId": f"{_JOB_ID}.2",
        "attempt": 2,
        "scheduledFor": "2027-02-01T08:00:00Z",
        "cause": "schedule",
        "workerId": "worker-2.9c41d07e",
        "leaseGeneration": 2,
        "startedAt": "2027-02-01T08:00:21.431Z",
        "finishedAt": None,
        "outcome": None,
        "error": None,
        "result": None,
    },
    {
        "runId": f"{_JOB_ID}.1",
        "attempt": 1,
        "scheduledFor": "2027-02-01T08:00:00Z",
        "cause": "schedule",
        "workerId": "worker-1.3f0a77b2",
        "leaseGeneration": 1,
        "startedAt": "2027-02-01T08:00:00.012Z",
        "finishedAt": "2027-02-01T08:00:01.8Z",
        "outcome": "failed",
        "error": "HTTP 503",
        "result": None,
    },
]

SKIPS: Final[list[dict[str, Any]]] = [
    {"from": "2027-02-02T08:00:00Z", "to": "2027-02-05T08:00:00Z", "count": 4, "reason": "missed"}
]

AUDIT: Final[list[dict[str, Any]]] = [
    {
        "at": "2027-02-03T10:11:12.131415Z",
        "action": "pause",
        "keyId": "4fGhT2kQ9b",
        "keyName": "billing",
        "requestId": "5b0c1d2e3f405162",
        "detail": {"fields": ["paused", "pauseReason"]},
    }
]

SHARDS: Final[dict[str, Any]] = {
    "items": [
        {
            "worker": "worker-1.3f0a77b2",
            "arcs": [[0, 1023], [2048, 4095]],
            "lagSeconds": 0.42,
            "due": 3,
            "running": 10,
        }
    ],
    "slots": [{"slot": 77, "lagSeconds": 0.42, "due": 3}],
    "unowned": [[1024, 2047]],
    "epoch": 12,
    "takenAt": "2027-02-01T08:00:00.5Z",
}

WORKERS: Final[dict[str, Any]] = {
    "items": [
        {
            "workerId": "worker-1.3f0a77b2",
            "name": "worker-1",
            "capacity": 10,
            "running": 10,
            "handlers": ["default", "http", "log"],
            "version": "0.1.0",
            "tzdata": "2026.3",
            "epoch": 12,
            "draining": False,
        }
    ],
    "nextCursor": None,
}

FORECAST: Final[dict[str, Any]] = {
    "startsAt": "2027-02-01T08:59:30Z",
    "horizonSeconds": 3600,
    "perSecond": [[30, 2000], [90, 12]],
    "perMinute": [2000, 12, *[0] * 58],
    "peak": {"at": "2027-02-01T09:00:00Z", "due": 2000},
    "backlog": 0,
    "capacity": 200,
    "meanSeconds": 5.02,
    "worstDelaySeconds": 50.2,
    "clearsAt": "2027-02-01T09:00:51Z",
    "complete": True,
}
AUTOSCALE: Final[dict[str, Any]] = {
    "desiredCapacity": 168,
    "capacity": 20,
    "backlog": 0,
    "dueNextMinute": 2000,
    "meanSeconds": 5.02,
    "horizonSeconds": 240,
}

PREVIEW_BODY: Final[dict[str, Any]] = {
    "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Madrid"},
    "after": "2027-03-27T00:00:00Z",
    "count": 2,
}
PREVIEW: Final[dict[str, Any]] = {
    "nextRuns": ["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z"],
    "marks": [{"at": "2027-03-28T01:00:00Z", "mark": "moved"}],
}
