"""Real servers for every test: see tests/support/backends.py for which.

    database_url      an empty migrated database of its own per test
    empty_database_url  a database without a schema
    zookeeper_hosts   "host:port/chroot", the chroot its own per test and created
    own_postgres()    starts a PostgreSQL of the test's own: .url .stop() .start() .kill() .freeze() .thaw()
    own_zookeeper()   the same of ZooKeeper: .hosts …
    programs          .worker(…) .coordinator(…) .api(…): whole programs, killed at the end of the test

Each xdist worker has servers of its own. Nothing is durable: a test server forgets its data with the machine.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from kazoo.exceptions import NotEmptyError

from tests.support.backends import Backend, Choice, choose, docker_answers
from tests.support.programs import Programs
from tests.support.servers import (
    Databases,
    OwnPostgres,
    OwnZooKeeper,
    own_postgres_server,
    own_zookeeper_server,
    session_postgres,
    session_zookeeper,
    zookeeper_client,
)

# A slow machine is no fault of the code.
hypothesis.settings.register_profile(
    "ringcron", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("ringcron")

_CHOICE = pytest.StashKey[Choice]()


def pytest_configure(config: pytest.Config) -> None:
    choice = config.stash[_CHOICE] = choose(os.environ, docker_answers)
    if Backend.DOCKER in (choice.postgres, choice.zookeeper):
        config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")  # docker-py leaves sockets open


def pytest_report_header(config: pytest.Config) -> str:
    return config.stash[_CHOICE].sentence()


@pytest.fixture(scope="session")
def server_choice(pytestconfig: pytest.Config) -> Choice:
    return pytestconfig.stash[_CHOICE]


@pytest.fixture(scope="session")
def _databases(server_choice: Choice) -> Iterator[Databases]:
    with session_postgres(server_choice) as url:
        databases = Databases(url)
        yield databases
        databases.close()


@pytest.fixture(scope="session")
def _zookeeper(server_choice: Choice) -> Iterator[str]:
    with session_zookeeper(server_choice) as hosts:
        yield hosts


@pytest.fixture
def database_url(_databases: Databases) -> Iterator[str]:
    url = _databases.create()
    yield url
    _databases.drop(url)


@pytest.fixture
def empty_database_url(_databases: Databases) -> Iterator[str]:
    url = _databases.create_empty()
    yield url
    _databases.drop(url)


@pytest.fixture
def zookeeper_hosts(_zookeeper: str) -> Iterator[str]:
    chroot = f"/ringcron-test-{uuid.uuid4().hex[:12]}"
    with zookeeper_client(_zookeeper) as client:
        client.ensure_path(chroot)
    yield _zookeeper + chroot
    with zookeeper_client(_zookeeper) as client, contextlib.suppress(NotEmptyError):
        client.delete(chroot, recursive=True)  # programs of the test may still be at work in it: then it stays


@pytest.fixture
def own_postgres(server_choice: Choice) -> Iterator[Callable[..., OwnPostgres]]:
    with contextlib.ExitStack() as stack:
        yield lambda **keywords: stack.enter_context(own_postgres_server(server_choice, **keywords))


@pytest.fixture
def own_zookeeper() -> Iterator[Callable[[], OwnZooKeeper]]:
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(own_zookeeper_server())


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    started = Programs(tmp_path)
    yield started
    started.close()
