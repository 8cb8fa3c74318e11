"""A cluster that the user runs: its API and its database were named, its workers are not ours.

Invariant: nothing of it is started, stopped or changed, but for the jobs that a run puts in, which leave with
retention as all others do.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg

from loadtest.api_call import ApiConnection
from loadtest.cluster.errors import ClusterError
from loadtest.cluster.programs import Program
from loadtest.database import Database
from loadtest.starts import StartLogs

BUILTIN: Final = "sleep"
"""The built-in handler that every worker has; its payload is ours too."""


@contextmanager
def given_cluster(*, api_url: str, database_url: str, api_key: str | None) -> Iterator[GivenCluster]:
    """Raises ClusterError where it cannot be reached, or no worker of it has the handler."""
    try:
        database = Database(database_url)
    except psycopg.Error as error:
        raise ClusterError(f"the database cannot be reached: {str(error).strip()}") from error
    with database:
        try:
            with ApiConnection(api_url, api_key) as connection:
                connection.call("GET", "/shards", expect=200)
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"the API at {api_url} cannot be reached: {error}") from error
        cluster = GivenCluster(database, api_url.rstrip("/"), api_key)
        if not cluster.capacity:
            raise ClusterError(f"no worker of that cluster has reported the handler {BUILTIN!r} in the last 15 s")
        yield cluster


class GivenCluster:
    """See `given_cluster`."""

    own: Final = False
    handler: Final = BUILTIN
    workers: Final[Sequence[Program]] = ()
    starts: Final[StartLogs | None] = None
    postgres_pid: Final[int | None] = None
    blind_spots: Final[Sequence[str]] = (
        "A given cluster: starts are what run rows say (started_at), since its workers write no start log; a second "
        "start whose writes were refused would not be seen.",
        "A given cluster: CPU and memory of its processes cannot be read, and no worker of it is stopped or killed.",
    )

    def __init__(self, database: Database, api_url: str, api_key: str | None) -> None:
        self.database = database
        self.api_url = api_url
        self.api_key = api_key
        rows = database.run("list_capacity", handler=BUILTIN)
        self.worker_count = len(rows)
        self.capacity: int = sum(row[1] for row in rows)
        """How many jobs its workers run at once."""
        self.fleet = f"{self.worker_count} workers of a given cluster, {self.capacity} places in all"
