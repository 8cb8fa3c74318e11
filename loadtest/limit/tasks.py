"""The limit as tasks: one asyncio process with a task for each job."""

from __future__ import annotations

import asyncio
import os

import psycopg

from loadtest.limit.bare_jobs import (
    CLAIM,
    COMPLETE,
    NEXT_DUE,
    SLEEP_SECONDS,
    Claimed,
    bounds,
    complete_parameters,
    seq_of,
)
from loadtest.peers.protocol import StartLog, say_ready
from ringcron.clock import SystemClock


async def work(url: str) -> None:
    """Run jobs until killed."""
    clock, log, owner = SystemClock(), StartLog(), f"limit-{os.getpid()}"

    async def run(claim: Claimed) -> None:
        log.write(seq_of(claim.id))

    async with await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=0) as connection:
        cursor = connection.cursor(binary=True)
        say_ready()
        while True:
            within = bounds(clock.wall())
            await cursor.execute(CLAIM, {"owner": owner, **within})
            claimed = [Claimed(*row) for row in await cursor.fetchall()]
            if claimed:
                await asyncio.gather(*(asyncio.create_task(run(claim)) for claim in claimed))
                await cursor.execute(COMPLETE, complete_parameters(claimed, owner, within))
                continue
            await cursor.execute(NEXT_DUE)
            row = await cursor.fetchone()
            await asyncio.sleep(SLEEP_SECONDS if row is None else min(max(row[0], 0.0), SLEEP_SECONDS))
