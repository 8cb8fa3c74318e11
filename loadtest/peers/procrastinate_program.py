"""procrastinate as `loadtest compare` runs it: the schema, the jobs, a worker. Runs in the peer's own environment.

Tuned: 20 jobs at once (default 1), polls every 0.5 s (default 5), a pool of 20.
"""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime
from itertools import groupby

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]

from loadtest.peers.protocol import CHUNK, Order, StartLog, database_url, job_seconds, order, say_ready, say_took

CONCURRENCY = 20

app = App(connector=PsycopgConnector(conninfo=database_url(), min_size=1, max_size=CONCURRENCY))
log = StartLog()


async def run(seq: int) -> None:
    log.write(seq)
    if seconds := job_seconds():
        await asyncio.sleep(seconds)


task = app.task(name="compare")(run)


async def schema() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue(wanted: Order) -> None:
    """Its bulk call takes one instant for all jobs of the call."""
    async with app.open_async():
        began = time.perf_counter()
        for chunk in wanted.chunks(CHUNK):
            for at, jobs in groupby(chunk, key=lambda job: job[1]):
                deferrer = task.configure(schedule_at=datetime.fromtimestamp(at, UTC))
                await deferrer.batch_defer_async(*({"seq": seq} for seq, _ in jobs))
        say_took(time.perf_counter() - began)


async def work() -> None:
    async with app.open_async():
        say_ready()
        await app.run_worker_async(concurrency=CONCURRENCY, fetch_job_polling_interval=0.5)


if __name__ == "__main__":
    match sys.argv[1]:
        case "schema":
            asyncio.run(schema())
        case "enqueue":
            asyncio.run(enqueue(order()))
        case _:
            asyncio.run(work())
