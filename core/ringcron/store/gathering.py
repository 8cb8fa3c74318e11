"""Creates that are asked for at the same time are stored by one statement, in one commit.

Invariant: a create is answered once its own row is committed, and not before; one that cannot be stored is refused
alone. Nobody waits for company: while fewer than FLUSHES are under way the next one begins at once, with whoever is
there; so a lone create costs what it would cost without this, and sixteen at a time cost a third of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import psycopg

from ringcron.errors import StoreUnavailable
from ringcron.models import Job
from ringcron.store.creating import NewJob

FLUSHES: Final = 2
"""Statements under way at a time."""
TOGETHER: Final = 50
"""Jobs of one statement."""


class Gathering:
    """Gathers creates and has them stored."""

    def __init__(self, store: Callable[[Sequence[NewJob]], Awaitable[list[Job]]], *, seconds: float) -> None:
        """`store` stores all of them or none, and answers in order. `seconds`: the longest that a caller waits."""
        self._store = store
        self._seconds = seconds
        self._waiting: list[tuple[NewJob, asyncio.Future[Job]]] = []
        self._flushing: set[asyncio.Task[None]] = set()

    async def insert(self, new: NewJob) -> Job:
        """Store a job without a key. Raises what `store` raises, and StoreUnavailable."""
        stored: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._waiting.append((new, stored))
        if len(self._flushing) < FLUSHES:
            task = asyncio.create_task(self._flush_all())
            self._flushing.add(task)
            task.add_done_callback(self._flushing.discard)
        try:
            async with asyncio.timeout(self._seconds):
                return await stored
        except TimeoutError:
            raise StoreUnavailable(f"the database did not answer within {self._seconds:g} s") from None

    async def _flush_all(self) -> None:
        while self._waiting:
            together, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
            await self._flush([one for one in together if not one[1].done()])  # done: its caller waits no more

    async def _flush(self, together: Sequence[tuple[NewJob, asyncio.Future[Job]]]) -> None:
        if not together:
            return
        try:
            jobs = await self._store([new for new, _ in together])
        except Exception as error:
            if len(together) > 1 and isinstance(error, psycopg.DataError | psycopg.IntegrityError):
                for one in together:
                    await self._flush([one])
                return
            for _, stored in together:
                _settle(stored, error)
            return
        for (_, stored), job in zip(together, jobs, strict=True):
            _settle(stored, job)


def _settle(stored: asyncio.Future[Job], outcome: Job | Exception) -> None:
    if stored.done():
        return
    if isinstance(outcome, Exception):
        stored.set_exception(outcome)
    else:
        stored.set_result(outcome)
