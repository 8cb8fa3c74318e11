"""A pool and its jobs as rows, for pages to show: a worker that lags, one that went silent, arcs in handover, a spike
ahead, dead jobs of three faults, a job with a history and a breached alert."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from ringcron.slots import new_job_id, slot_of

Connection = psycopg.Connection[Any]
HANDLERS = ["charge", "report", "webhook"]
WORKERS = 8
SILENT = "worker-5.9f1c02ab"
FAULTS = (
    ("webhook", "failed at attempt 5 of 5: the target answered 503 to order {n}", 23),
    ("charge", "failed at attempt 3 of 3: KeyError: 'customer_{n}'", 7),
    ("report", "timed out at attempt 5 of 5: it ran for longer than 600 s", 2),
)


def put_sample(connection: Connection, *, only_reports: bool = False) -> dict[str, str]:
    """Put all of it in; `only_reports`: let the workers report anew, for what they say ages within seconds."""
    _report(connection)
    if only_reports:
        return {}
    _assignments(connection)
    _waiting(connection)
    dead = _dead(connection)
    return {"recurring": _recurring(connection), "dead": dead}


def _report(connection: Connection) -> None:
    size = 4096 // WORKERS
    for number in range(WORKERS):
        worker = SILENT if number == 4 else f"worker-{number + 1}.{0x3A5F + number * 7919:08x}"
        arcs = [[number * size, number * size + size * 3 // 4 - 1]]
        other = (number + 3) % WORKERS
        arcs.append([other * size + size * 3 // 4, other * size + size - 1])
        connection.execute(
            "insert into workers (worker_id, name, capacity, running, handlers, version, tzdata, epoch, draining, "
            "slices, report_seconds, mean_seconds, seen_at) "
            "values (%s, %s, 16, %s, %s, '0.1.0', '2026.6', 41, false, %s, 5, %s, "
            "now() - make_interval(secs => %s)) on conflict (worker_id) do update set seen_at = excluded.seen_at",
            (
                worker,
                worker.partition(".")[0],
                16 if number == 2 else 3 + number,
                HANDLERS,
                Jsonb([{"handlers": HANDLERS, "arcs": arcs}]),
                Jsonb({"webhook": 8.5, "charge": 1.2, "report": 12.4}),
                12.5 if number == 4 else 0.5,
            ),
        )


def _assignments(connection: Connection) -> None:
    now = datetime.now(UTC)
    told = (
        (38, 5400, "there was no assignment", 0, 4096, []),
        (39, 5398, "handover", 4096, 0, []),
        (40, 620, "1 joined (worker-8.00009bb4)", 512, 0, [[3712, 4095, "worker-7", "worker-8"]]),
        (41, 4, "1 joined (worker-9.0000babb)", 340, 0, [[896, 1023, "worker-2.0000594e", "worker-9.0000babb"]]),
    )
    for epoch, ago, cause, moved, unowned, transit in told:
        connection.execute(
            "insert into epochs values (%s, %s, %s, 'coordinator-1.6b1f', 8, %s, %s, %s)",
            (epoch, now - timedelta(seconds=ago), cause, moved, unowned, Jsonb(transit)),
        )


def _insert(connection: Connection, handler: str, due_seconds: float, *, days_old: float = 0.1, **columns: Any) -> str:
    now = datetime.now(UTC)
    job_id = new_job_id(now - timedelta(days=days_old))
    due = now + timedelta(seconds=due_seconds)
    values: dict[str, Any] = {
        "id": job_id,
        "slot": slot_of(job_id),
        "next_run_at": due,
        "state": "due",
        "handler": handler,
        "scheduled_for": due,
        "decided_until": due - timedelta(seconds=1),
        "run_at": due,
        "payload": Jsonb({"order": 4711}),
        "created_at": now - timedelta(days=days_old),
        "updated_at": now - timedelta(minutes=20),
    }
    values |= columns
    names = ", ".join(values)
    connection.execute(
        f"insert into jobs ({names}) values ({', '.join(['%s'] * len(values))})".encode(), list(values.values())
    )
    return str(job_id)


def _waiting(connection: Connection) -> None:
    for number in range(40):  # the slice of worker 3 lags, the slots of the silent one wait
        _insert(connection, "webhook", -8 - number * 1.4, slot=1024 + number * 9)
    for number in range(18):
        _insert(connection, "charge", -3 - number * 5, slot=2048 + number * 21)
    for number in range(60):
        _insert(connection, "report", -0.2 - number / 40, slot=(number * 67) % 4096)
    for second, count in ((240, 30), (900, 420), (901, 80), (1800, 160), (2700, 45)):
        for _ in range(count):
            _insert(connection, "webhook", second)
    _insert(connection, "video", -1500, name="transcode-88")
    _insert(connection, "charge", 7200, key="invoice-4711", tags=["billing", "eu"])
    _insert(connection, "charge", 86400, name="renew-certificates", tags=["infra"])


def _dead(connection: Connection) -> str:
    last = ""
    for handler, reason, count in FAULTS:
        for number in range(count):
            last = _insert(
                connection,
                handler,
                0,
                state="dead",
                next_run_at=datetime(9500, 1, 1, tzinfo=UTC),
                attempt=5,
                dead_reason=reason.format(n=8800 + number),
                updated_at=datetime.now(UTC) - timedelta(minutes=3 * number + 1),
            )
    return last


def _recurring(connection: Connection) -> str:
    schedule = {"cron": "30 2 * * *", "timezone": "Europe/Madrid"}
    job_id = _insert(
        connection, "report", 9000, days_old=40, name="nightly-report", key="report/nightly", tags=["finance", "daily"],
        schedule=Jsonb(schedule), run_at=None, payload=Jsonb({"format": "pdf", "to": ["cfo@example.com"]}),
    )  # fmt: skip
    now = datetime.now(UTC)
    connection.execute("update jobs set alert_if_no_success_seconds = 72000 where id = %s", (job_id,))
    connection.execute(
        "insert into job_alerts (job_id, since, look_at, no_success_since) values (%s, %s, %s, %s)",
        (job_id, now - timedelta(days=1), now, now - timedelta(hours=4)),
    )
    generation = 0
    for day in range(24, 0, -1):
        planned = now - timedelta(days=day)
        outcomes = {
            17: ("failed", "failed", "succeeded"),
            9: ("lost", "succeeded"),
            4: ("timed_out", "failed", "failed"),
        }
        for attempt, outcome in enumerate(outcomes.get(day, ("succeeded",)), 1):
            generation += 1
            start = planned + timedelta(seconds=0.04 + 40 * (attempt - 1))
            error = None if outcome == "succeeded" else "ConnectionResetError: [Errno 104] Connection reset by peer"
            if outcome == "failed":
                error = 'Traceback (most recent call last):\n  File "jobs.py", line 18, in report\n' + (error or "")
            connection.execute(
                "insert into runs (job_id, lease_generation, claimed_at, attempt, scheduled_for, cause, worker_id, "
                "started_at, finished_at, outcome, error, result) "
                "values (%s, %s, %s, %s, %s, 'schedule', %s, %s, %s, %s, %s, %s)",
                (
                    job_id, generation, start, attempt, planned, "worker-2.0000594e", start,
                    start + timedelta(seconds=12.4 + day), outcome, error,
                    Jsonb({"pages": 31 + day, "sent": 1}) if outcome == "succeeded" else None,
                ),
            )  # fmt: skip
    connection.execute(
        "insert into skips (job_id, decided_at, first, last, count, reason) values (%s, %s, %s, %s, 2, 'paused')",
        (job_id, now - timedelta(days=12), now - timedelta(days=14), now - timedelta(days=13)),
    )
    for action, key, why in (("pause", "ops", "the mail server moves"), ("resume", "ops", "it has moved")):
        connection.execute(
            "insert into audit_log (action, job_id, key_id, key_name, detail) values (%s, %s, 'k', %s, %s)",
            (action, job_id, key, Jsonb({"reason": why, "via": "dashboard"})),
        )
    return job_id
