"""A second PostgreSQL that follows the first and takes its place.

Two ports stand in the programs' database URL (`target_session_attrs=read-write`). The server that takes writes has one
of them; the other is the standby's, or is held by a socket that nobody listens on, so that no other program gets it.

Invariant: the two never have the same port, and a server that was replaced is never started again on one of them: what
it has committed and nobody followed is read on a port that no program knows.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from loadtest.chaos.disk import mounted, unmount
from loadtest.chaos.truth import Said, read_said
from loadtest.database import Database
from ringcron.local.errors import LocalServerError
from ringcron.local.postgres import ELSEWHERE, ROLE, PostgresServer
from ringcron.local.postgres_binaries import find_postgres
from ringcron.local.processes import run_as, unprivileged

REPLICATION: Final[Mapping[str, str]] = {
    "wal_level": "replica",
    "max_wal_senders": "4",
    "wal_keep_size": "256MB",
    "wal_retrieve_retry_interval": "200ms",
}
ALONE: Final[Mapping[str, str]] = {"synchronous_standby_names": "", "default_transaction_read_only": "on"}
"""Of a server that was replaced and is only read."""
WRITABLE: Final = "target_session_attrs=read-write"


class Succession:
    """The servers of one cluster, one after the other, and the two ports that they have in turn."""

    def __init__(self, folder: Path, first: PostgresServer, settings: Mapping[str, str], *, replicated: bool) -> None:
        """`first` is in `folder / "postgres"`. `replicated` False: there will be no other."""
        self._folder = folder
        self._settings = settings
        self._made = 1
        self._homes = {first: folder / "postgres"}
        self._held = _held(0) if replicated else None
        self._other = 0 if self._held is None else self._held.getsockname()[1]
        """The port that the primary has not."""

    def url(self, primary: PostgresServer) -> str:
        """What the programs are told: the addresses of both servers, of which the one that takes writes is meant."""
        if not self._other:
            return primary.url
        url = urlsplit(primary.url)
        return url._replace(netloc=f"{url.netloc},127.0.0.1:{self._other}", query=WRITABLE).geturl()

    def follow(self, primary: PostgresServer) -> PostgresServer:
        """Copy the primary and start a standby on the other port, on a small disk of its own where the primary has one.
        Only where `replicated`. Raises LocalServerError."""
        assert self._held is not None
        self._made += 1
        home = self._folder / f"postgres-{self._made}"
        if self.disk_of(primary) is None or mounted(home) is None:
            home.mkdir(exist_ok=True)
        try:
            _copy(primary, home, self._other)
        except LocalServerError:
            _delete(home)
            raise
        standby = PostgresServer(home, settings=self._settings)
        self._homes[standby] = home
        self._held.close()
        standby.spawn()
        return standby

    def gone(self, server: PostgresServer) -> None:
        """That server, a standby or a primary that was replaced, has ended for good: its port is held from now on."""
        self._other = server.port
        self._held = _held(server.port)

    def disk_of(self, server: PostgresServer) -> Path | None:
        """Its own small disk, if it has one."""
        home = self._homes[server]
        return home if home.is_mount() else None

    def testimony(self, old: PostgresServer, until: float) -> Said:
        """What `old`, which was killed at `until` (elapsed), had committed. It is started once more where nobody finds
        it, and can only be read. Raises LocalServerError."""
        home = self._homes[old]
        (home / "port").unlink()  # another is chosen
        witness = PostgresServer(home, settings={**self._settings, **ALONE})
        witness.start()
        try:
            with Database(witness.url) as database:
                return read_said(database, until)
        finally:
            witness.stop()

    def forget(self, server: PostgresServer, logs: Path) -> None:
        """Delete the data of a server that has ended, and keep its log."""
        home = self._homes.pop(server)
        shutil.copyfile(server.log, logs / f"{home.name}.log")
        _delete(home)

    def close(self) -> None:
        """Let the port go and take the disks away. The servers have ended."""
        if self._held is not None:
            self._held.close()
        for home in self._homes.values():
            if home.is_mount():
                unmount(home)


def _delete(home: Path) -> None:
    if home.is_mount():
        unmount(home)
    shutil.rmtree(home, ignore_errors=True)


def _held(port: int) -> socket.socket:
    """A socket that keeps the port from others and takes no connection; 0: any port."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", port))
    return held


def _copy(primary: PostgresServer, home: Path, port: int) -> None:
    """A base backup of the primary in `home / "data"` that will follow it, with the same password."""
    identity = unprivileged()
    password = str(urlsplit(primary.url).password)
    kept = home / "password"
    descriptor = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(password)
    (home / "port").write_text(f"{port}\n", encoding="ascii")
    if identity is not None:
        for path in (home, kept):
            os.chown(path, identity.uid, identity.gid)
    binaries = find_postgres()
    if not binaries.reachable_by(identity):
        binaries = binaries.copied_below(ELSEWHERE)
    done = run_as(
        identity,
        [
            *(binaries.bin_folder / "pg_basebackup", "-D", home / "data"),
            *("-d", f"host=127.0.0.1 port={primary.port} user={ROLE}"),
            *("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"),
        ],
        environment={**binaries.environment(), "PGPASSWORD": password},
        folder=home,
    )
    if done.returncode != 0:
        raise LocalServerError(f"pg_basebackup failed:\n{done.stdout.strip()}")
