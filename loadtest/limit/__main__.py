"""One process of the limit: `python -m loadtest.limit batches|tasks|enqueue …`, as `loadtest.peers.protocol` says."""

from __future__ import annotations

import asyncio
import sys

from loadtest.limit import batches, tasks
from loadtest.peers.protocol import database_url, order

if __name__ == "__main__":
    match sys.argv[1]:
        case "enqueue":
            batches.enqueue(database_url(), order())
        case "tasks":
            asyncio.run(tasks.work(database_url()))
        case _:
            batches.work(database_url())
