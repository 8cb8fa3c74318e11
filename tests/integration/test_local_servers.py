"""The servers that `./dev up` and the tests start on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from ringcron.local.errors import LocalServerError
from ringcron.local.postgres import PostgresServer, home_of, remove
from ringcron.local.processes import launch, unprivileged
from ringcron.local.zookeeper import ZooKeeperServer
from tests.support.servers import OwnPostgres, OwnZooKeeper, scratch_folder, zookeeper_client
from tests.support.waiting import until_sync


@pytest.mark.store
def test_each_test_has_an_empty_migrated_database(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*) from jobs").fetchone() == (0,)


def test_each_test_has_a_chroot_of_its_own(zookeeper_hosts: str) -> None:
    with zookeeper_client(zookeeper_hosts) as client:
        assert client.get_children("/") == []


def test_postgres_keeps_its_data_port_and_password_over_a_restart(own_postgres: Callable[..., OwnPostgres]) -> None:
    server = own_postgres()
    with psycopg.connect(server.url) as connection:
        connection.execute("create table kept as select 1 as one")
    for end in (server.stop, server.kill):
        end()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url, connect_timeout=2)
        server.start()
        with psycopg.connect(server.url) as connection:
            assert connection.execute("select one from kept").fetchone() == (1,)


def test_postgres_takes_no_connection_without_the_password(own_postgres: Callable[..., OwnPostgres]) -> None:
    url = own_postgres().url
    password = url.split(":")[2].split("@")[0]
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url.replace(password, "wrong"))


def test_postgres_does_not_run_as_root_and_hides_its_password() -> None:
    with scratch_folder() as folder:
        server = PostgresServer(folder / "postgres", durable=False)
        server.start()
        try:
            assert server.process is not None
            assert psutil.Process(server.process.pid).uids().effective != 0
            assert (folder / "postgres/password").stat().st_mode & 0o077 == 0
        finally:
            server.stop()


def test_a_frozen_postgres_does_not_answer_until_it_is_thawed(own_postgres: Callable[..., OwnPostgres]) -> None:
    server = own_postgres()
    url = server.url
    server.freeze()
    with pytest.raises(psycopg.errors.ConnectionTimeout):
        psycopg.connect(url, connect_timeout=2)
    server.thaw()
    with psycopg.connect(url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives up its rights before it starts PostgreSQL")
def test_a_folder_that_postgres_cannot_enter_is_replaced_by_a_link(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    folder = closed / "postgres"
    try:
        server = PostgresServer(folder, durable=False)
        server.start()
        server.stop()
        assert folder.is_symlink()
        assert home_of(folder, unprivileged()) == folder.resolve()
        assert closed.stat().st_mode & 0o777 == 0o700, "the mode of a folder that is not ours was changed"
    finally:
        home = folder.resolve()
        remove(folder)
    assert not home.exists()


def test_data_of_another_version_is_refused_with_its_number() -> None:
    with scratch_folder() as folder:
        server = PostgresServer(folder / "postgres", durable=False)
        server.start()
        server.stop()
        (folder / "postgres/data/PG_VERSION").write_text("9\n")
        with pytest.raises(LocalServerError, match="made by PostgreSQL 9, and this is"):
            server.start()


def test_a_server_that_cannot_start_says_why() -> None:
    with scratch_folder() as folder:
        server = PostgresServer(folder / "postgres", durable=False, settings={"shared_buffers": "nonsense"})
        with pytest.raises(LocalServerError, match="shared_buffers"):
            server.start()


def test_zookeeper_keeps_its_tree_and_port_over_a_restart(own_zookeeper: Callable[[], OwnZooKeeper]) -> None:
    server = own_zookeeper()
    with zookeeper_client(server.hosts) as client:
        client.create("/kept", b"1")
    hosts = server.hosts
    for end in (server.stop, server.kill):
        end()
        server.start()
        assert server.hosts == hosts
        with zookeeper_client(hosts) as client:
            assert client.get("/kept")[0] == b"1"


def test_zookeeper_takes_more_than_sixty_clients_of_one_machine(own_zookeeper: Callable[[], OwnZooKeeper]) -> None:
    configuration = Path(f"/proc/{own_zookeeper().pid}/cmdline").read_bytes().split(b"\0")[-2].decode()
    assert "maxClientCnxns=0\n" in Path(configuration).read_text()


def test_a_start_waits_for_a_predecessor_that_is_still_shutting_down() -> None:
    with scratch_folder() as folder:
        first = PostgresServer(folder / "postgres", durable=False)
        second = PostgresServer(folder / "postgres", durable=False)
        first.start()
        stopping = threading.Timer(1.0, first.stop)
        stopping.start()
        try:
            second.start()
            assert second.port == first.port
        finally:
            stopping.join()
            second.stop()


PARENT = """
import signal, sys, pathlib
from ringcron.local.postgres import PostgresServer
from ringcron.local.zookeeper import ZooKeeperServer
folder = pathlib.Path(sys.argv[1])
servers = [PostgresServer(folder / "postgres", durable=False), ZooKeeperServer(folder / "zookeeper", durable=False)]
for server in servers:
    server.start()
print(*(server.process.pid for server in servers), flush=True)
signal.pause()
"""


@pytest.mark.processes
def test_servers_do_not_outlive_a_parent_that_is_killed_and_start_again_on_what_it_left() -> None:
    with scratch_folder() as folder:
        for _ in range(2):
            parent = subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], stdout=subprocess.PIPE, text=True)
            assert parent.stdout is not None
            with parent.stdout:
                pids = [int(pid) for pid in parent.stdout.readline().split()]
            children = [psutil.Process(pid) for pid in pids]
            children += [grandchild for child in children for grandchild in child.children(recursive=True)]
            assert len(children) > 2
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            until_sync(lambda: not any(child.is_running() for child in children), seconds=10, what="all have ended")  # noqa: B023
        for server in (PostgresServer(folder / "postgres"), ZooKeeperServer(folder / "zookeeper")):
            server.start()
            server.stop()


@pytest.mark.processes
def test_a_child_has_a_session_of_its_own_and_its_own_pid(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = launch(["sh", "-c", "echo $$ $(ps -o sid= -p $$)"], log=log)
    assert child.wait(10) == 0
    assert log.read_text().split() == [str(child.pid), str(child.pid)]
