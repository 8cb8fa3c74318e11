"""The log: one line per event, on standard error, as JSON or for eyes.

    structlog.get_logger(__name__).info("claimed", jobs=3, kind="own")

Invariant: no line holds a password, whoever wrote it: the finished line is searched for them. What libraries log
through `logging` comes out in the same form.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from ringcron.clock import Clock
from ringcron.redaction import redact

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["json", "console"]

_NOISY: Final = ("kazoo", "aiohttp.access", "asyncio")
"""Libraries whose information is not for operators; their warnings are."""


def configure(
    *,
    program: str,
    name: str | None,
    form: Format,
    level: Level,
    clock: Clock,
    stream: TextIO | None = None,
) -> None:
    """Send every log of this process to `stream` (standard error). Each line says which program wrote it."""
    output = stream or sys.stderr
    least = logging.getLevelNamesMapping()[level.upper()]
    about: dict[str, Any] = {"program": program, "pid": os.getpid()} | ({} if name is None else {"name": name})

    def stamp(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return {"at": clock.wall().isoformat(timespec="milliseconds").replace("+00:00", "Z"), **about, **event}

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        stamp,
        structlog.processors.StackInfoRenderer(),
    ]
    rendering: list[Processor] = [structlog.processors.format_exc_info, _json]
    if form == "console":
        rendering = [
            structlog.dev.ConsoleRenderer(
                colors=output.isatty(),
                timestamp_key="at",
                exception_formatter=structlog.dev.plain_traceback,  # the pretty one prints every local variable
            )
        ]

    def redacted(_: WrappedLogger, __: str, line: Any) -> str:
        return redact(line.decode() if isinstance(line, bytes) else str(line))

    structlog.configure(
        processors=[*shared, *rendering, redacted],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.PrintLoggerFactory(output),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering, redacted],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(least)
    for library in _NOISY:
        logging.getLogger(library).setLevel(max(least, logging.WARNING))


def _json(_: WrappedLogger, __: str, event: MutableMapping[str, Any]) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
