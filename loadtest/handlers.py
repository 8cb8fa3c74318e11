"""The handler that load-test jobs name: it writes its start down and, where the payload says so, waits.

A worker imports this module, so it imports next to nothing. Payload: `{}`, `{"seconds": 5}`, or
`{"seconds": 30, "again": 0}` for a job that takes another time when it runs again.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

from loadtest.starts import FOLDER_VARIABLE, StartLog
from ringcron import RunContext, handler

HANDLER: Final = "loadtest"
SLOWNESS_VARIABLE: Final = "LOADTEST_SLOWNESS"
"""How many times longer than told this worker's jobs take."""

_slowness: Final = float(os.environ.get(SLOWNESS_VARIABLE, "1"))
_log: Final = StartLog(os.environ.get(FOLDER_VARIABLE))


@handler(HANDLER)
async def note_start(ctx: RunContext, payload: Any) -> None:
    """Write down that this run started, then take as long as the payload says."""
    _log.write(ctx)
    if payload:
        seconds = payload["seconds"] if ctx.attempt == 1 else payload.get("again", payload["seconds"])
        await asyncio.sleep(seconds * _slowness)
