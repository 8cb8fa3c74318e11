"""One look at a cluster: what its processes hold, what its tables have become, how far behind it is.

Invariant: nothing is kept here; a sample is numbers by name. A process that is down at the moment is not in it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from loadtest.api_call import ApiConnection
from loadtest.cluster.own import OwnCluster
from loadtest.usage import handles_of, memory_alone, trees_of

MIB: Final = 1024.0 * 1024.0
SPARED: Final = "the spared worker"
TABLES: Final = ("jobs", "runs", "workers", "lag_snapshot", "job_keys", "skips", "idempotency_keys")
"""Those that traffic writes to."""
OTHERS: Final = "others"


def sample(cluster: OwnCluster) -> dict[str, float]:
    """A sample; memory and tables in MiB, lag in seconds. Raises ClusterError, OSError where the API is silent."""
    found = _processes(cluster)
    found |= _tables(cluster)
    found["lag"] = _lag(cluster.api_url)
    return found


def _processes(cluster: OwnCluster) -> dict[str, float]:
    api = [] if cluster.api is None else [cluster.api]
    kinds = {
        "workers": [worker.pid for worker in cluster.workers if worker.running],
        "coordinators": [coordinator.pid for coordinator in cluster.coordinators if coordinator.running],
        "API": [program.pid for program in api if program.running],
        "PostgreSQL": [cluster.postgres_pid],
    }
    families: dict[int, list[int]] = {pid: trees_of([pid]) for pids in kinds.values() for pid in pids}
    families[cluster.postgres_pid] = [pid for pid in families[cluster.postgres_pid] if not _vacuums(pid)]
    found = _numbers("this harness", [[os.getpid()]])
    for kind, pids in kinds.items():
        found |= _numbers(kind, [families[pid] for pid in pids])
    spared = cluster.workers[0].pid
    return found | (_numbers(SPARED, [families[spared]]) if spared in families else {})


def _vacuums(pid: int) -> bool:
    """Whether this is an autovacuum worker: they come and go with memory that is none of the traffic's."""
    try:
        return b"autovacuum worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _numbers(kind: str, families: Sequence[Sequence[int]]) -> dict[str, float]:
    """Of a kind: what all have together and what one has, its descendants with it, on average."""
    pids = [pid for family in families for pid in family]
    memories = [memory for memory in map(memory_alone, pids) if memory is not None]
    handles = [held for held in map(handles_of, pids) if held is not None]
    if not memories or not handles:
        return {}
    allocated = sum(memory.anon for memory in memories) / MIB
    return {
        f"PSS of {kind}": sum(memory.pss for memory in memories) / MIB,
        f"RSS of {kind}": sum(memory.rss for memory in memories) / MIB,
        f"allocated by {kind}": allocated,
        f"allocated by one of {kind}": allocated / len(families),
        f"threads of {kind}": sum(held.threads for held in handles) / len(families),
        f"files of {kind}": sum(held.files for held in handles) / len(families),
    }


def _tables(cluster: OwnCluster) -> dict[str, float]:
    database = cluster.database
    found: dict[str, float] = {f"dead rows of {name}": 0.0 for name in (*TABLES, OTHERS)}
    total = 0.0
    for name, dead, live, table_bytes, index_bytes in database.run("soak/measure_tables"):
        found[f"dead rows of {name if name in TABLES else OTHERS}"] += dead
        total += dead
        if name in ("jobs", "runs"):
            found[f"size of {name}"] = table_bytes / MIB
            found[f"size of indexes of {name}"] = index_bytes / MIB
            if live:
                found[f"bytes a row of {name}"] = (table_bytes + index_bytes) / live
    found["dead rows"] = total
    found["size of waiting indexes"] = database.value("soak/measure_waiting_indexes") / MIB
    found["connections"] = database.value("soak/count_connections")
    return found


def _lag(api_url: str) -> float:
    """The greatest lag of a shard, as an operator sees it."""
    with ApiConnection(api_url) as api:
        items: list[Mapping[str, float]] = api.call("GET", "/shards", expect=200)["items"]
    return max((item["lagSeconds"] for item in items if item["due"]), default=0.0)
