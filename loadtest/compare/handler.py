"""The handler that ringcron's workers run in a comparison: it writes its start down as every contestant does."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from loadtest.peers.protocol import StartLog, job_seconds
from ringcron import RunContext, handler

NAME: Final = "loadtest"
"""As in `loadtest.handlers`, which a worker may not import beside this module: a name is registered once."""

_log = StartLog()
_seconds = job_seconds()


@handler(NAME)
async def note_start(_: RunContext, payload: Any) -> None:
    """Write down that job number `seq` started, then take as long as COMPARE_JOB_SECONDS says."""
    _log.write(payload["seq"])
    if _seconds:
        await asyncio.sleep(_seconds)
