"""The ZooKeeper of a run: one server, or a quorum of three that can lose its leader.

Invariant: servers keep their folders and ports over restarts, so the hosts that a client was told stay good. What leads
is what the servers themselves say.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from loadtest.chaos.steering import free_ports
from ringcron.local.processes import tail, wait_until
from ringcron.local.zookeeper import START_SECONDS, ZooKeeperServer

_QUORUM: Final = {"initLimit": "20", "syncLimit": "10", "standaloneEnabled": "false", "reconfigEnabled": "false"}


class ZooKeepers:
    """`count` servers in a folder, which serve at `address`. `start` waits until all serve; nothing else waits."""

    def __init__(self, folder: Path, *, count: int, address: str) -> None:
        ports = free_ports(2 * count)
        peers = {
            f"server.{number}": f"{address}:{ports[2 * number - 2]}:{ports[2 * number - 1]}"
            for number in range(1, count + 1)
        }
        self.servers: list[ZooKeeperServer] = []
        for number in range(1, count + 1):
            data = folder / str(number) / "data"
            data.mkdir(parents=True)
            (data / "myid").write_text(f"{number}\n", encoding="ascii")
            self.servers.append(
                ZooKeeperServer(
                    data.parent, durable=False, address=address, settings={} if count == 1 else {**_QUORUM, **peers}
                )
            )

    @property
    def ports(self) -> list[int]:
        return [server.port for server in self.servers]

    @property
    def hosts(self) -> str:
        """What a client is told of all of them."""
        return ",".join(server.hosts for server in self.servers)

    def leader(self) -> ZooKeeperServer | None:
        """The one that leads; None where none does, and where there is only one."""
        return next((server for server in self.running() if server.mode() == "leader"), None)

    def running(self) -> Iterator[ZooKeeperServer]:
        """Those that have not ended; they may be frozen."""
        return (one for one in self.servers if one.process is not None and one.process.poll() is None)

    def spawn(self) -> None:
        """Start those that do not run."""
        running = list(self.running())
        for server in self.servers:
            if server not in running:
                server.spawn()

    def is_ready(self) -> bool:
        """Whether all serve."""
        return all(server.is_ready() for server in self.servers)

    def start(self) -> None:
        """Start those that do not run, and wait until all serve. Raises LocalServerError."""
        self.spawn()
        wait_until(
            self.is_ready,
            seconds=START_SECONDS,
            otherwise=lambda: (
                f"ZooKeeper did not start within {START_SECONDS:.0f} s:\n"
                + "\n".join(tail(server.log) for server in self.servers)
            ),
        )

    def kill(self) -> None:
        """End all as a crash would."""
        for server in self.servers:
            server.kill()

    def send(self, sign: signal.Signals) -> None:
        """Send a signal to all that run: SIGSTOP, SIGCONT."""
        for server in self.running():
            assert server.process is not None
            server.process.send_signal(sign)
