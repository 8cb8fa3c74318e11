"""The servers of a test session, and servers that a test has for itself, to stop, freeze and start again."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
from kazoo.client import KazooClient
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import ringcron_sql.migrate
from ringcron.local.postgres import PostgresServer, remove
from ringcron.local.postgres_binaries import find_postgres
from ringcron.local.zookeeper import ZooKeeperServer
from tests.support.backends import Backend, Choice
from tests.support.containers import postgres_in_docker, zookeeper_in_docker


def with_database(url: str, name: str) -> str:
    """The same server, another database."""
    if url.startswith(("postgresql://", "postgres://")):
        head, _, tail = url.partition("://")
        authority, _, rest = tail.partition("/")
        query = rest.partition("?")[2]
        return f"{head}://{authority}/{name}" + (f"?{query}" if query else "")
    return make_conninfo(**{**conninfo_to_dict(url), "dbname": name})


def migrate(url: str) -> None:
    """Bring an empty database to the newest schema. In a thread: the caller may have an event loop."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(ringcron_sql.migrate.migrate(url))).result()


class Databases:
    """Fresh migrated databases on one server, cloned from a template that is migrated once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._template: str | None = None

    def create(self) -> str:
        """A migrated database of its own; its URL."""
        if self._template is None:
            template = self._named("template")
            self._execute(f'create database "{template}"')
            migrate(with_database(self._url, template))
            self._template = template
        name = self._named("test")
        self._execute(f'create database "{name}" template "{self._template}"')
        return with_database(self._url, name)

    def create_empty(self) -> str:
        """A database with nothing in it; its URL."""
        name = self._named("empty")
        self._execute(f'create database "{name}"')
        return with_database(self._url, name)

    def drop(self, url: str) -> None:
        name = conninfo_to_dict(url)["dbname"]
        self._execute(f'drop database if exists "{name}" with (force)')

    def close(self) -> None:
        if self._template is not None:
            self._execute(f'drop database if exists "{self._template}" with (force)')

    @staticmethod
    def _named(kind: str) -> str:
        return f"ringcron_{kind}_{uuid.uuid4().hex[:12]}"

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextlib.contextmanager
def zookeeper_client(hosts: str) -> Iterator[Any]:
    """A started kazoo client, closed at the end."""
    client = KazooClient(hosts=hosts, timeout=10)
    client.start(timeout=20)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's own: PostgreSQL gives up root before it opens its data."""
    with tempfile.TemporaryDirectory(prefix="ringcron-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextlib.contextmanager
def session_postgres(choice: Choice) -> Iterator[str]:
    """The URL of the session's PostgreSQL."""
    if choice.postgres is Backend.URL:
        assert choice.postgres_url is not None
        yield choice.postgres_url
    elif choice.postgres is Backend.DOCKER:
        with postgres_in_docker(choice.postgres_major or 18) as url:
            yield url
    else:
        with scratch_folder() as folder:
            server = PostgresServer(folder / "postgres", durable=False, binaries=find_postgres(choice.postgres_major))
            server.start()
            try:
                yield server.url
            finally:
                server.stop()


@contextlib.contextmanager
def session_zookeeper(choice: Choice) -> Iterator[str]:
    """The hosts of the session's ZooKeeper, without a chroot."""
    if choice.zookeeper is Backend.URL:
        assert choice.zookeeper_hosts is not None
        yield choice.zookeeper_hosts
    elif choice.zookeeper is Backend.DOCKER:
        with zookeeper_in_docker() as hosts:
            yield hosts
    else:
        with scratch_folder() as folder:
            server = ZooKeeperServer(folder / "zookeeper", durable=False)
            server.start()
            try:
                yield server.hosts
            finally:
                server.stop()


class _Own:
    """A server that belongs to one test."""

    def __init__(self, server: PostgresServer | ZooKeeperServer) -> None:
        self._server = server

    @property
    def pid(self) -> int:
        assert self._server.process is not None
        return self._server.process.pid

    def start(self) -> None:
        """Start it, on the same port as before and with the same data."""
        self._server.start()

    def stop(self) -> None:
        """Shut it down in good order."""
        self._server.stop()

    def kill(self) -> None:
        """Crash it."""
        self._server.kill()

    def freeze(self) -> None:
        """SIGSTOP to all its processes: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT to all its processes."""
        self._signal(signal.SIGCONT)

    def _signal(self, sign: signal.Signals) -> None:
        parent = psutil.Process(self.pid)
        # The parent first when freezing, so that it starts no child in between; last when thawing, for symmetry.
        parent.send_signal(sign)
        for child in parent.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.send_signal(sign)


class OwnPostgres(_Own):
    """A PostgreSQL of its own. `url` names a migrated database."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__(server)
        self._databases: Databases | None = None
        self._url: str | None = None
        self._postgres = server

    @property
    def url(self) -> str:
        if self._url is None:
            self._url = Databases(self._postgres.url).create()
        return self._url


class OwnZooKeeper(_Own):
    """A ZooKeeper of its own. `hosts` has no chroot."""

    def __init__(self, server: ZooKeeperServer) -> None:
        super().__init__(server)
        self._zookeeper = server

    @property
    def hosts(self) -> str:
        return self._zookeeper.hosts


@contextlib.contextmanager
def own_postgres_server(choice: Choice, *, durable: bool = False, **settings: str) -> Iterator[OwnPostgres]:
    """Always embedded: a test may stop and freeze it. `settings` are PostgreSQL's own names."""
    with scratch_folder() as folder:
        binaries = find_postgres(choice.postgres_major)
        server = PostgresServer(folder / "postgres", durable=durable, binaries=binaries, settings=settings)
        server.start()
        own = OwnPostgres(server)
        try:
            yield own
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                own.thaw()
            server.stop()
            remove(folder / "postgres")


@contextlib.contextmanager
def own_zookeeper_server() -> Iterator[OwnZooKeeper]:
    """Always embedded: a test may stop and freeze it."""
    with scratch_folder() as folder:
        server = ZooKeeperServer(folder / "zookeeper", durable=False)
        server.start()
        try:
            yield OwnZooKeeper(server)
        finally:
            server.kill()
