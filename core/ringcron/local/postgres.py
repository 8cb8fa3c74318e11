"""One PostgreSQL server of ours on 127.0.0.1.

Invariants: it takes no connection without the password in `<folder>/password`, which only its own user and root can
read; it never runs as root; it shuts down when the process that started it is gone. The folder is authoritative: a
second object on the same folder finds the same data, the same password and, where it is still free, the same port.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ringcron.local.errors import LocalServerError
from ringcron.local.postgres_binaries import PostgresBinaries, find_postgres
from ringcron.local.processes import (
    Identity,
    end,
    free_port,
    is_free,
    launch,
    run_as,
    tail,
    unprivileged,
    wait_until,
)

ROLE: Final = "ringcron"
DATABASE: Final = "ringcron"
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 20.0
ELSEWHERE: Final = Path("/var/lib/ringcron")

_SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
    "max_connections": "200",
    "max_locks_per_transaction": "256",  # a look-up by id alone locks every partition
    "shared_buffers": "256MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
_NOT_DURABLE: Final[Mapping[str, str]] = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer:
    """A server in a folder. `start` and `stop` block; `spawn` and `is_ready` do not wait for the server."""

    def __init__(
        self,
        folder: Path,
        *,
        durable: bool = True,
        binaries: PostgresBinaries | None = None,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`durable` False: commits may be lost with the machine; for tests. `settings` go before ours. `environment`:
        more variables of the server's process."""
        self.process: subprocess.Popen[bytes] | None = None
        self._identity = unprivileged()
        self._folder = home_of(folder, self._identity)
        self._binaries = binaries or find_postgres()
        self._durable = durable
        # Set by the last program before the server: what drops our privileges must not see them.
        self._prefix = ["env", *(f"{name}={value}" for name, value in environment.items())] if environment else []
        self._settings = {**_SETTINGS, **({} if durable else _NOT_DURABLE), **(settings or {})}
        self._port: int | None = None

    @property
    def major(self) -> int:
        return self._binaries.major

    @property
    def log(self) -> Path:
        return self._folder / "postgres.log"

    @property
    def port(self) -> int:
        """The port; known from the first start on."""
        if self._port is None:
            raise LocalServerError("the server has not been started yet")
        return self._port

    @property
    def url(self) -> str:
        """A URL with the password of the superuser, for the database `ringcron`."""
        password = (self._folder / "password").read_text(encoding="ascii").strip()
        return f"postgresql://{ROLE}:{password}@127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> None:
        """Start the server and wait until it takes connections. Raises LocalServerError with the end of its log."""
        process = self.spawn()
        wait_until(
            lambda: self.is_ready() or process.poll() is not None,
            seconds=START_SECONDS,
            otherwise=lambda: f"PostgreSQL did not start within {START_SECONDS:.0f} s:\n{tail(self.log)}",
        )
        if process.poll() is not None:
            raise LocalServerError(f"PostgreSQL ended at once, exit code {process.returncode}:\n{tail(self.log)}")

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the server's process, making its data first where there are none."""
        if not self._binaries.reachable_by(self._identity):
            self._binaries = self._binaries.copied_below(ELSEWHERE)
        if not (self._data / "PG_VERSION").exists():
            self._initialize()
        self._refuse_other_version()
        self._await_predecessor()
        self._choose_port()
        settings = {**self._settings, "port": str(self.port)}
        flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.process = launch(
            [*self._prefix, self._binaries.bin_folder / "postgres", "-D", self._data, *flags],
            parent_death_signal=signal.SIGINT,
            identity=self._identity,
            environment=self._binaries.environment(),
            folder=self._folder,
            log=self.log,
        )
        return self.process

    def is_ready(self) -> bool:
        """Whether the process that we started takes connections."""
        lines = self._pid_file()
        return (
            self.process is not None
            and len(lines) >= 8
            and lines[0].strip() == str(self.process.pid)
            and lines[7].strip() == "ready"
        )

    def stop(self) -> None:
        """Shut down: sessions are cut, commits are on disk. Does nothing where the server does not run."""
        if self.process is not None:
            end(self.process, signal.SIGINT, seconds=STOP_SECONDS)

    def kill(self) -> None:
        """End it as a crash of the machine would; the next start recovers."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            end(self.process, signal.SIGQUIT, seconds=STOP_SECONDS)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _initialize(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self._data, ignore_errors=True)  # left half-made by an earlier try
        password = self._folder / "password"
        password.unlink(missing_ok=True)
        descriptor = os.open(password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(24))
        if self._identity is not None:
            for path in (self._folder, password):
                os.chown(path, self._identity.uid, self._identity.gid)
        initdb = self._binaries.bin_folder / "initdb"
        scratch = self._folder / "data.new"
        shutil.rmtree(scratch, ignore_errors=True)
        options: list[str] = ["-U", ROLE, "-E", "UTF8", "--no-locale", "-A", "scram-sha-256", "--no-instructions"]
        options += [] if self._durable else ["--no-sync"]
        self._run([initdb, "-D", str(scratch), "--pwfile", str(password), *options])
        single_user: list[str | Path] = [self._binaries.bin_folder / "postgres", "--single", "-D", scratch, "postgres"]
        self._run(single_user, input_text=f"create database {DATABASE}\n")
        scratch.rename(self._data)

    def _run(self, arguments: Sequence[str | Path], input_text: str = "") -> None:
        done = run_as(
            self._identity,
            arguments,
            environment=self._binaries.environment(),
            folder=self._folder,
            input_text=input_text,
        )
        if done.returncode != 0:
            raise LocalServerError(f"{Path(arguments[0]).name} failed:\n{done.stdout.strip()}")

    def _refuse_other_version(self) -> None:
        written_by = (self._data / "PG_VERSION").read_text(encoding="ascii").strip()
        if written_by != str(self.major):
            raise LocalServerError(
                f"{self._data} was made by PostgreSQL {written_by}, and this is {self.major}: "
                "start afresh, or install that version"
            )

    def _await_predecessor(self) -> None:
        """A server whose parent was killed a moment ago may still be shutting down; then its pid file is stale."""
        lines = self._pid_file()
        if not lines or not lines[0].strip().isdigit():
            return
        pid = int(lines[0])
        if not self._is_ours(pid):
            (self._data / "postmaster.pid").unlink(missing_ok=True)
            return
        wait_until(
            lambda: not self._is_ours(pid),
            seconds=STOP_SECONDS,
            otherwise=lambda: f"another PostgreSQL (process {pid}) runs on {self._data}",
        )

    def _is_ours(self, pid: int) -> bool:
        """Whether that process is a PostgreSQL server on our data."""
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except FileNotFoundError:
            return not Path("/proc/self").exists()  # no /proc here: let PostgreSQL itself judge its pid file
        return os.fsencode(self._data) in command.split(b"\0")

    def _pid_file(self) -> list[str]:
        try:
            return (self._data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return []

    def _choose_port(self) -> None:
        """The port of last time if it is free: a URL that somebody noted stays good."""
        note = self._folder / "port"
        if self._port is None and note.exists():
            noted = int(note.read_text(encoding="ascii"))
            self._port = noted if is_free(noted) else None
        if self._port is None:
            self._port = free_port()
        note.write_text(f"{self._port}\n", encoding="ascii")


def home_of(folder: Path, identity: Identity | None) -> Path:
    """The folder itself; or, where that user cannot enter it, one under /var/lib/ringcron that stands for it.

    A clone below a closed home folder (root's own, say) cannot be entered by the user that PostgreSQL runs as. No
    permission of a folder that is not ours is ever changed, so the server's files go elsewhere and a link leads there.
    """
    folder = folder.absolute()
    if folder.is_symlink():
        return folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    if identity is None or run_as(identity, ["test", "-x", folder.parent]).returncode == 0:
        return folder
    home = ELSEWHERE / hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()
    home.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(home)
    return home


def remove(folder: Path) -> None:
    """Delete a server's folder and, where it is a link to one elsewhere, what it leads to."""
    if folder.is_symlink():
        shutil.rmtree(folder.resolve(), ignore_errors=True)
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
