"""The log of a handler process: what handlers log through `logging`, in the form of the worker's log.

One line per event on standard error, as JSON or for eyes, with the run it belongs to and without passwords. (The worker
logs through structlog; it would double the size of every handler process.)
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

from ringcron.redaction import redact
from ringcron_shard_worker.handler_process.context import Context


class Form(logging.Formatter):
    """The form of a line; `running` is set while a run goes on."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._json = form == "json"
        self.running: Context | None = None

    def format(self, record: logging.LogRecord) -> str:
        """JSON, or a line for eyes."""
        event: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "program": "handler",
            "pid": record.process,
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if self.running is not None:
            event |= {"job": str(self.running.job_id), "run": self.running.run_id}
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        if self._json:
            return redact(orjson.dumps(event, default=str).decode())
        rest = " ".join(f"{key}={event[key]}" for key in ("logger", "pid", "run") if key in event)
        line = f"{event['at']} [{event['level']}] {event['event']} {rest}"
        return redact("\n".join([line, event["exception"]] if "exception" in event else [line]))


def configure(form: str, level: str) -> Form:
    """Send what this process logs to standard error."""
    formatter = Form(form)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    return formatter
