"""`log`: writes the payload to the worker's log. What a job without a handler of its own does."""

from __future__ import annotations

from typing import Any, Final

import orjson
import structlog

from ringcron.handlers import HandlerRegistry, RunContext
from ringcron_shard_worker.builtin import BuiltinSettings

SUMMARY_LIMIT: Final = 1024
"""Characters of the payload's JSON that are logged and returned."""

_log = structlog.get_logger(__name__)


async def log(ctx: RunContext, payload: Any) -> dict[str, Any]:
    """Takes any payload."""
    text = orjson.dumps(payload).decode()
    summary = text if len(text) <= SUMMARY_LIMIT else f"{text[:SUMMARY_LIMIT]}… ({len(text)} characters)"
    _log.info("job ran", job=str(ctx.job_id), run=ctx.run_id, attempt=ctx.attempt, payload=summary)
    return {"logged": summary}


def register(registry: HandlerRegistry, _: BuiltinSettings) -> None:
    registry.register("log", log)
