"""The lines of a handler process."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from uuid import UUID

from ringcron_shard_worker.handler_process.context import Context
from ringcron_shard_worker.handler_process.logs import Form

RUN = Context(
    job_id=UUID(int=7), run_id=f"{UUID(int=7)}.3", scheduled_for=datetime.now(UTC), attempt=1, lease_generation=3
)


def record(text: str, *, failed: bool = False) -> logging.LogRecord:
    exc_info = None
    if failed:
        try:
            raise ValueError("no")
        except ValueError:
            exc_info = sys.exc_info()
    return logging.LogRecord("reports", logging.WARNING, __file__, 1, text, (), exc_info)


def test_a_line_is_json_with_its_run() -> None:
    form = Form(as_json=True)
    form.running = RUN
    line = json.loads(form.format(record("made")))

    assert line["event"] == "made"
    assert (line["level"], line["logger"], line["program"]) == ("warning", "reports", "handler")
    assert (line["job"], line["run"]) == (str(RUN.job_id), RUN.run_id)


def test_a_line_for_eyes() -> None:
    line = Form(as_json=False).format(record("made", failed=True))

    assert "[warning] made logger=reports" in line
    assert line.endswith("ValueError: no")


def test_no_line_shows_a_password() -> None:
    for as_json in (True, False):
        assert "hush" not in Form(as_json=as_json).format(record("postgresql://me:hush@host/db"))
