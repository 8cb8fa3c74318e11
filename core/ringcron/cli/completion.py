"""What a shell proposes while a command is being typed.

Invariant: a completion is quick or empty. It asks the API once, for the newest jobs, and is silent about every fault.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import typer

from ringcron.cli.api_connection import connect
from ringcron.client import Job, JobState
from ringcron.errors import RingcronError

PATIENCE: Final = timedelta(seconds=1)
PROPOSED: Final = 200
"""Jobs that are looked at, from the newest on."""

_UNSAFE: Final = re.compile(r"[^\w .:/@-]")

Completion = Callable[[typer.Context, str], list[tuple[str, str]]]


def job_ids(state: JobState | None = None) -> Completion:
    """Proposes the ids of jobs, of one state where it is given, each with what helps to tell it from others."""

    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        try:
            jobs = asyncio.run(_newest(ctx.params.get("api"), ctx.params.get("api_key"), state))
        except RingcronError:
            return []
        return [(job.job_id, _what(job)) for job in jobs if job.job_id.startswith(incomplete)]

    return complete


async def _newest(url: str | None, api_key: str | None, state: JobState | None) -> tuple[Job, ...]:
    async with connect(url, api_key, os.environ, patience=PATIENCE, tries=1) as client:
        async for page in client.list_jobs(state=state, page_size=PROPOSED).pages():
            return page.items
    return ()


def _what(job: Job) -> str:
    """Shells evaluate what they are given, and anybody may have named the job."""
    return _UNSAFE.sub("_", f"{job.state} {job.name or job.key or job.handler}")
