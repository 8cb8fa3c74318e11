"""pgqueuer as `loadtest compare` runs it: the schema, the jobs, a worker. Runs in the peer's own environment.

Tuned: asyncpg, uvloop, batches of 250 (default 10). It sleeps until its next due job by itself.
"""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import timedelta

import asyncpg  # type: ignore[import-not-found]
import uvloop  # type: ignore[import-not-found]
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.models import Job  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

from loadtest.peers.protocol import CHUNK, Order, StartLog, database_url, job_seconds, order, say_ready, say_took

ENTRYPOINT = "compare"


async def schema() -> None:
    connection = await asyncpg.connect(database_url())
    await Queries.from_asyncpg_connection(connection).install()
    await connection.close()


async def enqueue(wanted: Order) -> None:
    connection = await asyncpg.connect(database_url())
    queries = Queries.from_asyncpg_connection(connection)
    began = time.perf_counter()
    for chunk in wanted.chunks(CHUNK):
        count = len(chunk)
        now = time.time()
        await queries.enqueue(
            [ENTRYPOINT] * count,
            [str(seq).encode() for seq, _ in chunk],
            [0] * count,
            [timedelta(seconds=max(0.0, at - now)) for _, at in chunk],
        )
    say_took(time.perf_counter() - began)
    await connection.close()


async def work() -> None:
    log, seconds = StartLog(), job_seconds()
    pgq = PgQueuer.from_asyncpg_connection(await asyncpg.connect(database_url()))

    async def run(job: Job) -> None:
        log.write(int(job.payload or b"0"))
        if seconds:
            await asyncio.sleep(seconds)

    pgq.entrypoint(ENTRYPOINT)(run)
    say_ready()
    await pgq.run(batch_size=250)


if __name__ == "__main__":
    match sys.argv[1]:
        case "schema":
            uvloop.run(schema())
        case "enqueue":
            uvloop.run(enqueue(order()))
        case _:
            uvloop.run(work())
