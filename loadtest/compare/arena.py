"""The server of a comparison, the templates of the contestants, and a fresh database for each run.

Invariants: the server is durable (fsync, synchronous_commit and full_page_writes on) and the same for all; no run sees
what another one left. A template has its final name only once it is complete; the name holds a digest of what it was
made from and the day, so that a folder that is kept never serves one that is out of date (far-future jobs come near).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from loadtest.cluster.own import POSTGRES_SETTINGS
from loadtest.compare.contestants import Contestant
from loadtest.database import Database, statement
from loadtest.progress import Progress
from ringcron.clock import SystemClock
from ringcron.local.postgres import PostgresServer
from ringcron.local.zookeeper import ZooKeeperServer

_TEMPLATE: Final = "compare_template_"
_UNFINISHED: Final = "compare_unfinished_"
_RUN: Final = "compare_run_"


class Arena:
    """PostgreSQL and ZooKeeper of our own in a folder. A context."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        settings = {**POSTGRES_SETTINGS, "shared_preload_libraries": ""}
        self.folder = folder
        self._postgres = PostgresServer(folder / "postgres", settings=settings)
        self._zookeeper: ZooKeeperServer | None = None
        self._progress = progress
        self._day = SystemClock().wall().date().isoformat()
        self._copies = 0

    def __enter__(self) -> Arena:
        self._postgres.start()
        shutil.rmtree(self.runs, ignore_errors=True)
        for name in self._names():
            if name.startswith((_RUN, _UNFINISHED)):
                self._administer("compare/drop_database", name=name)
        return self

    def __exit__(self, *_: object) -> None:
        if self._zookeeper is not None:
            self._zookeeper.kill()
        self._postgres.stop()

    @property
    def url(self) -> str:
        return self._postgres.url

    @property
    def runs(self) -> Path:
        """The folder of the runs' own folders."""
        return self.folder / "runs"

    @property
    def postgres_pid(self) -> int:
        """The postmaster's; its children are the sessions."""
        assert self._postgres.process is not None
        return self._postgres.process.pid

    def zookeeper(self) -> str:
        """`host:port` of a ZooKeeper, started by the first who asks."""
        if self._zookeeper is None:
            self._zookeeper = ZooKeeperServer(self.folder / "zookeeper")
            self._zookeeper.start()
        return self._zookeeper.hosts

    def prepare(self, contestant: Contestant, ballast: int) -> str:
        """The name of the template with so many far-future jobs, made where there is none yet. Raises Broken."""
        family = f"{_TEMPLATE}{contestant.queries}_{ballast}_"
        name = family + self._digest(contestant)
        there = self._names()
        if name in there:
            return name
        self._progress.say(f"{contestant.name}: a template with {ballast:,} far-future jobs")
        for outdated in there:
            if outdated.startswith(family):
                self._administer("compare/drop_database", name=outdated)
        unfinished = _UNFINISHED + contestant.queries
        self._administer("compare/drop_database", name=unfinished)
        self._administer("compare/create_database", name=unfinished)
        url = self._url_of(unfinished)
        contestant.build(url)
        with Database(url) as database:
            if ballast:
                database.run(f"{contestant.queries}/ballast", ballast=ballast)
            database.run("compare/vacuum")
        self._administer("compare/rename_database", name=unfinished, final=name)
        return name

    @contextmanager
    def fresh(self, contestant: Contestant, ballast: int) -> Iterator[str]:
        """The URL of a copy of the template, dropped at the end."""
        template = self.prepare(contestant, ballast)
        self._copies += 1
        name = f"{_RUN}{self._copies}"
        self._administer("compare/copy_database", name=name, template=template)
        try:
            yield self._url_of(name)
        finally:
            self._administer("compare/drop_database", name=name)

    def _digest(self, contestant: Contestant) -> str:
        made_from = [self._day, contestant.edition, statement(f"{contestant.queries}/ballast").decode()]
        return blake2b("\n".join(made_from).encode(), digest_size=5).hexdigest()

    def _names(self) -> list[str]:
        with Database(self.url) as database:
            return [row[0] for row in database.run("compare/list_databases")]

    def _administer(self, query: str, **identifiers: str) -> None:
        text: Any = statement(query).decode()
        composed = sql.SQL(text).format(**{key: sql.Identifier(value) for key, value in identifiers.items()})
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(composed)

    def _url_of(self, database: str) -> str:
        """A URL, for contestants that read nothing else."""
        parts = conninfo_to_dict(self.url)
        return f"postgresql://{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}/{database}"
