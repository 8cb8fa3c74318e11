"""The log of a handler process: one line per event on standard error, in the form of the worker's log, with its run.

Two ways to the same lines. structlog doubles the size of a process, so what handlers log through `logging` is formatted
here; once a handler has brought structlog in, the worker's own configuration (ringcron.logs) is used for both.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from ringcron.redaction import redact
from ringcron_shard_worker.handler_process.context import Context

PROGRAM = "handler"


class Form(logging.Formatter):
    """A line as JSON or for eyes; `running` is set while a run goes on."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json
        self.running: Context | None = None

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "program": PROGRAM,
            "pid": record.process,
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if self.running is not None:
            event |= {"job": str(self.running.job_id), "run": self.running.run_id}
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        if self._as_json:
            return redact(orjson.dumps(event, default=str).decode())
        rest = " ".join(f"{key}={event[key]}" for key in ("logger", "pid", "run") if key in event)
        line = f"{event['at']} [{event['level']}] {event['event']} {rest}"
        return redact("\n".join([line, event["exception"]] if "exception" in event else [line]))


class Log:
    """The log of this process."""

    def __init__(self, form: Literal["json", "console"], level: Literal["debug", "info", "warning", "error"]) -> None:
        self._form: Literal["json", "console"] = form
        self._level: Literal["debug", "info", "warning", "error"] = level
        self._with_structlog = False
        self._formatter = Form(as_json=form == "json")
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(self._formatter)
        root = logging.getLogger()
        root.handlers[:] = [handler]
        root.setLevel(level.upper())

    def begin(self, context: Context) -> None:
        """Lines belong to this run from now on."""
        self._formatter.running = context
        if "structlog" in sys.modules:
            self._adopt_structlog(context)

    def end(self) -> None:
        """Lines belong to no run."""
        self._formatter.running = None
        if self._with_structlog:
            import structlog

            structlog.contextvars.clear_contextvars()

    def _adopt_structlog(self, context: Context) -> None:
        import structlog

        from ringcron import logs
        from ringcron.clock import SystemClock

        if not self._with_structlog and not structlog.is_configured():  # what a handler configured stays
            logs.configure(program=PROGRAM, name=None, form=self._form, level=self._level, clock=SystemClock())
        self._with_structlog = True
        structlog.contextvars.bind_contextvars(job=str(context.job_id), run=context.run_id)
