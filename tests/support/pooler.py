"""A real PgBouncer in transaction mode: that on PATH, else Debian's package unpacked into the cache, not installed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from psycopg.conninfo import conninfo_to_dict

from ringcron.local.cache import cache_folder, filled, missing_packages, unpack_debs
from ringcron.local.errors import NotAvailable
from ringcron.local.processes import end, free_port, launch, tail
from tests.support.waiting import until_sync

PACKAGE: Final = "pgbouncer"
OTHERS: Final = ("libc-ares", "libevent")
"""Libraries that it needs and that a machine may lack, by how their packages begin."""


def find_pgbouncer() -> tuple[Path, dict[str, str]]:
    """The program and the environment that it needs. Skips the test, saying why, where it is not to be had."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    if found := shutil.which(PACKAGE, path=path):
        return Path(found), {"PATH": path}
    try:
        folder = filled(cache_folder() / PACKAGE, _fetch)
    except (NotAvailable, OSError, subprocess.CalledProcessError) as reason:
        pytest.skip(f"no PgBouncer here and the package cannot be fetched: {reason}")
    libraries = ":".join(str(library) for library in folder.glob("usr/lib/*-linux-*"))
    program, environment = folder / "usr/sbin/pgbouncer", {"PATH": path, "LD_LIBRARY_PATH": libraries}
    said = subprocess.run([program, "--version"], env=environment, capture_output=True, text=True, check=False)
    if said.returncode != 0:
        pytest.skip(f"the package {PACKAGE} was unpacked into {folder}, but does not run here: {said.stderr.strip()}")
    return program, environment


def _fetch(into: Path) -> None:
    libraries = [name for name in missing_packages(PACKAGE) if name.startswith(OTHERS)]
    unpack_debs([PACKAGE, *libraries], into)


@contextmanager
def running_pooler(folder: Path, url: str, *, sessions: int) -> Iterator[str]:
    """The address of `url` behind a pooler that has at most so many sessions of PostgreSQL, one per transaction.

    It takes startup options and drops them, as many are told to, so that what it cannot do shows in the statements.
    """
    program, environment = find_pgbouncer()
    server = conninfo_to_dict(url)
    port = free_port()
    target = {key: server[key] for key in ("host", "port", "user", "password", "dbname") if server.get(key)}
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": sessions,
        "max_prepared_statements": 0,
        "ignore_startup_parameters": "options",
        **({"user": "nobody"} if os.geteuid() == 0 else {}),
    }
    version = subprocess.run([program, "--version"], env=environment, capture_output=True, text=True, check=True).stdout
    if tuple(map(int, version.split()[1].split(".")[:2])) < (1, 21):
        del settings["max_prepared_statements"]  # before, it knew none
    file, log = folder / "pgbouncer.ini", folder / "pgbouncer.log"
    file.write_text(
        "\n".join(
            [
                "[databases]",
                "* = " + " ".join(f"{key}={value}" for key, value in target.items()),
                "[pgbouncer]",
                *(f"{key} = {value}" for key, value in settings.items()),
            ]
        )
    )
    process = launch([program, file], environment=environment, log=log)

    def listens() -> bool:
        assert process.poll() is None, f"PgBouncer ended:\n{tail(log)}"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    try:
        until_sync(listens, seconds=30, what="PgBouncer listens")
        yield f"postgresql://{target['user']}@127.0.0.1:{port}/{target['dbname']}"
    finally:
        end(process, signal.SIGKILL, seconds=10)
