"""The ringing side of the bell: at most one NOTIFY every RING_SECONDS, on a connection of its own.

Invariant: nobody waits for it, and callers never hear of its failure (the log does): a bell is a hint. It never rings
inside a job's transaction: a NOTIFY in a commit takes a lock that all committing transactions share.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final
from uuid import UUID

import psycopg
import structlog

from ringcron.bell import encode_bells
from ringcron.store.link import Link
from ringcron_sql import query

RING_SECONDS: Final = 0.02

_log = structlog.get_logger(__name__)


class Ringer:
    """Gathers what is to be told and tells it."""

    def __init__(self, url: str, *, application_name: str, behind_pooler: bool = False) -> None:
        self._link = Link(url, application_name=application_name, seconds=2.0, behind_pooler=behind_pooler)
        self._slots: set[int] = set()
        self._cancels: set[tuple[UUID, int]] = set()
        self._some = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to ring."""
        self._task = asyncio.create_task(self._ring_forever())

    async def close(self) -> None:
        """Stop; what was not told yet is found by the polls."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._link.close()

    def due_soon(self, slot: int) -> None:
        """A job of this slot is due sooner than its worker may look."""
        self._slots.add(slot)
        self._some.set()

    def cancel(self, job_id: UUID, generation: int) -> None:
        """The run of this generation is to stop."""
        self._cancels.add((job_id, generation))
        self._some.set()

    async def _ring_forever(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            messages = encode_bells(self._slots, self._cancels)
            self._slots.clear()
            self._cancels.clear()
            try:
                async with self._link.connection() as connection:
                    for message in messages:
                        await connection.execute(query("ring_bell"), {"message": message})
            except (psycopg.Error, OSError) as error:
                _log.warning("the bell could not be rung: the polls will find what is due", error=str(error))
                with contextlib.suppress(psycopg.Error, OSError):
                    await self._link.recover()
            await asyncio.sleep(RING_SECONDS)
