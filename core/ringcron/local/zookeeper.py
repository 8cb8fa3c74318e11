"""One ZooKeeper server of ours on 127.0.0.1: a real one, of six jars, with no configuration of the machine's touched.

Invariants: it listens on loopback only, unless told an address, with no admin server; it is killed when the process
that started it is gone (its log makes that safe). The folder is authoritative: a second object on it finds the same
tree and, where it is still free, the same port.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ringcron.local.errors import LocalServerError
from ringcron.local.processes import end, free_port, is_free, launch, tail, wait_until
from ringcron.local.zookeeper_binaries import ZooKeeperBinaries, find_zookeeper

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0

_JVM: Final = (
    "-Xms16m",
    "-Xmx64m",
    "-Xss256k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dzookeeper.jmx.log4j.disable=true",
)
_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_SETTINGS: Final[Mapping[str, str]] = {
    "tickTime": "500",
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "srvr,mntr",
    "minSessionTimeout": "1000",
    "maxSessionTimeout": "60000",
    "maxClientCnxns": "0",  # the default refuses the 61st client of one machine
    "preAllocSize": "1024",
    "autopurge.snapRetainCount": "3",
    "autopurge.purgeInterval": "1",
}


class ZooKeeperServer:
    """A server in a folder. `start` and `stop` block; `spawn` and `is_ready` do not wait for the server."""

    def __init__(
        self,
        folder: Path,
        *,
        durable: bool = True,
        binaries: ZooKeeperBinaries | None = None,
        address: str = "127.0.0.1",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`durable` False: writes may be lost with the machine; for tests. `settings` go before ours."""
        self.process: subprocess.Popen[bytes] | None = None
        self.address = address
        self._settings = {**_SETTINGS, "clientPortAddress": address, **(settings or {})}
        self._folder = folder.absolute()
        self._durable = durable
        self._binaries = binaries or find_zookeeper()
        self._port: int | None = None

    @property
    def log(self) -> Path:
        return self._folder / "zookeeper.log"

    @property
    def port(self) -> int:
        """The port; known from the first start on."""
        if self._port is None:
            raise LocalServerError("the server has not been started yet")
        return self._port

    @property
    def hosts(self) -> str:
        """What a client is told: `127.0.0.1:port`."""
        return f"{self.address}:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it serves. Raises LocalServerError with the end of its log."""
        process = self.spawn()
        wait_until(
            lambda: self.is_ready() or process.poll() is not None,
            seconds=START_SECONDS,
            otherwise=lambda: f"ZooKeeper did not start within {START_SECONDS:.0f} s:\n{tail(self.log)}",
        )
        if process.poll() is not None:
            raise LocalServerError(f"ZooKeeper ended at once, exit code {process.returncode}:\n{tail(self.log)}")

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the server's process."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._choose_port()
        settings = {**self._settings, "clientPort": str(self.port), "dataDir": str(self._folder / "data")}
        if not self._durable:
            settings["forceSync"] = "no"
        configuration = self._folder / "zoo.cfg"
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        self.process = launch(
            [
                self._binaries.java,
                *_JVM,
                "-cp",
                ":".join(map(str, self._binaries.jars)),
                _MAIN,
                configuration,
            ],
            folder=self._folder,
            log=self.log,
        )
        return self.process

    def is_ready(self) -> bool:
        """Whether it serves."""
        return self.mode() is not None

    def mode(self) -> str | None:
        """`standalone`, `leader` or `follower`; None where it does not serve. (`ruok` answers before it does.)"""
        if self.process is None or self.process.poll() is not None:
            return None
        try:
            with socket.create_connection((self.address, self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                answer = b""
                while part := connection.recv(4096):
                    answer += part
        except OSError:
            return None
        found = re.search(rb"^Mode: (\w+)", answer, re.MULTILINE)
        return None if found is None else found[1].decode("ascii")

    def stop(self) -> None:
        """End it. Does nothing where it does not run."""
        if self.process is not None:
            end(self.process, signal.SIGTERM, seconds=STOP_SECONDS)

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is not None:
            end(self.process, signal.SIGKILL, seconds=STOP_SECONDS)

    def _choose_port(self) -> None:
        """The port of last time if it is free: hosts that somebody noted stay good."""
        note = self._folder / "port"
        if self._port is None and note.exists():
            noted = int(note.read_text(encoding="ascii"))
            self._port = noted if is_free(noted) else None
        if self._port is None:
            self._port = free_port()
        note.write_text(f"{self._port}\n", encoding="ascii")
