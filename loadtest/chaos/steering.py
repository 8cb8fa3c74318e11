"""The harness's hand on the proxy: start it, tell it what to do, read what it did.

Invariant: a command has taken effect when `tell` returns.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ringcron.local.processes import free_port, launch, wait_until

ANSWER_SECONDS: Final = 10.0


class Steering:
    """One proxy process with its routes: by name, where each leads and whether it is PostgreSQL there. It listens at
    `address`, where the servers do, too."""

    def __init__(
        self, address: str, targets: Mapping[str, tuple[int, bool]], environment: Mapping[str, str], log: Path
    ) -> None:
        self.address = address
        self._control = free_port()
        self._ports = dict(zip(targets, free_ports(len(targets)), strict=True))
        routes = [
            {"name": name, "address": address, "listen": self._ports[name], "to": to, "postgres": postgres}
            for name, (to, postgres) in targets.items()
        ]
        self.process: subprocess.Popen[bytes] = launch(
            [sys.executable, "-P", "-m", "loadtest.chaos.proxy", str(self._control), json.dumps(routes)],
            environment={**os.environ, **environment},
            log=log,
        )
        wait_until(self._answers, seconds=60, otherwise=lambda: f"the proxy did not start; see {log}")

    def ports(self, prefix: str) -> list[int]:
        """Where the routes listen whose names begin so."""
        return [port for name, port in self._ports.items() if name.startswith(prefix)]

    def tell(self, **command: Any) -> dict[str, int]:
        """See `Proxy._obey`; the counters."""
        with socket.create_connection(("127.0.0.1", self._control), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(json.dumps(command).encode() + b"\n")
            answer = connection.makefile("rb").readline()
        counts: dict[str, int] = json.loads(answer)
        return counts

    def _answers(self) -> bool:
        try:
            self.tell()
        except OSError:
            return False
        return True


def free_ports(count: int) -> Sequence[int]:
    """So many that differ: all are held before the first is let go."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
