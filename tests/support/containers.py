"""The session's servers in Docker, where an engine answers.

Of testcontainers only the plain container is used: its module for PostgreSQL moved between releases, and its ways to
wait for logs warn. Readiness is asked of the server itself.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import psycopg

from tests.support.waiting import until_sync

START_SECONDS = 120
PASSWORD = "only-for-tests"


@contextlib.contextmanager
def postgres_in_docker(major: int) -> Iterator[str]:
    """The URL of a server that forgets its data with the machine."""
    with _container(f"postgres:{major}", 5432, {"POSTGRES_PASSWORD": PASSWORD}, "postgres -c fsync=off") as address:
        url = f"postgresql://postgres:{PASSWORD}@{address}/postgres"
        until_sync(lambda: _answers_sql(url), seconds=START_SECONDS, what="PostgreSQL in Docker takes connections")
        yield url


@contextlib.contextmanager
def zookeeper_in_docker() -> Iterator[str]:
    """The address of a server with the ticks of ours."""
    environment = {
        "ZOO_TICK_TIME": "500",
        "ZOO_MAX_CLIENT_CNXNS": "0",
        "ZOO_4LW_COMMANDS_WHITELIST": "srvr",
        "ZOO_CFG_EXTRA": "minSessionTimeout=1000 maxSessionTimeout=60000",
    }
    with _container("zookeeper:3.9", 2181, environment) as address:
        until_sync(lambda: _serves(address), seconds=START_SECONDS, what="ZooKeeper in Docker serves")
        yield address


@contextlib.contextmanager
def _container(image: str, port: int, environment: dict[str, str], command: str | None = None) -> Iterator[str]:
    from testcontainers.core.container import DockerContainer

    container: Any = DockerContainer(image, env=environment, ports=[port], command=command)
    with container:
        yield f"{container.get_container_host_ip()}:{container.get_exposed_port(port)}"


def _answers_sql(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _serves(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2) as connection:
            connection.sendall(b"srvr")
            answer = b""
            while part := connection.recv(4096):
                answer += part
    except OSError:
        return False
    return b"Mode:" in answer
