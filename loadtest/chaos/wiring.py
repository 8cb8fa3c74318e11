"""Where each program finds its servers, and how a worker is cut off from them: by the rules of its namespace where it
has one, else by the proxy that then stands between.

Invariant: coordinators and the harness reach the servers past every proxy and namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from loadtest.chaos.namespaces import Namespaces
from loadtest.chaos.quorum import ZooKeepers
from loadtest.chaos.steering import Steering

LOOPBACK = "127.0.0.1"


class Wiring:
    """`steering` and `namespaces` are None where there are none."""

    def __init__(
        self,
        *,
        database_url: Callable[[], str],
        zookeeper: ZooKeepers,
        steering: Steering | None,
        namespaces: Namespaces | None,
    ) -> None:
        self.steering = steering
        self.namespaces = namespaces
        self._database_url = database_url
        self._zookeeper = zookeeper

    def addresses(self, kind: str, name: str) -> dict[str, str]:
        """Settings of a program, where they differ from everybody's."""
        if kind == "coordinator" or (self.steering is None and self.namespaces is None):
            return {}
        url = urlsplit(self._database_url())
        addresses = ",".join(f"{self._address}:{port}" for port in self._ports(name, "postgres"))
        netloc = f"{url.netloc.rpartition('@')[0]}@{addresses}"
        found = {"database_url": url._replace(netloc=netloc).geturl()}
        if kind == "worker":
            found["zookeeper"] = ",".join(f"{self._address}:{one}" for one in self._ports(name, "zookeeper"))
        return found

    def within(self, kind: str, name: str) -> list[str]:
        """The words that put a program where it belongs."""
        return self.namespaces.within(name) if self.namespaces is not None and kind == "worker" else []

    def cut(self, worker: str, server: str, *, up: bool, down: bool) -> None:
        """Let nothing pass from the worker to `postgres` or `zookeeper` (`up` False), or back (`down` False)."""
        if self.namespaces is not None:
            self.namespaces.cut(worker, self._ports(worker, server), up=up, down=down)
        elif self.steering is not None:
            self.steering.tell(routes=f"{worker}/{server}", up=up, down=down)

    def turn(self, names: Iterable[str], port: int) -> None:
        """PostgreSQL is at another port now: where there is a proxy, these programs' new connections go there."""
        if self.steering is not None:
            for name in names:
                self.steering.tell(routes=f"{name}/postgres", to=port)

    def heal(self) -> None:
        """Let everything pass again."""
        if self.namespaces is not None:
            self.namespaces.heal()
        if self.steering is not None:
            self.steering.tell(up=True, down=True)

    @property
    def dropped(self) -> int:
        """Packets that the rules which are gone have dropped; 0 where there are no namespaces."""
        return 0 if self.namespaces is None else self.namespaces.dropped

    @property
    def _address(self) -> str:
        return LOOPBACK if self.namespaces is None else self.namespaces.address

    def _ports(self, name: str, server: str) -> list[int]:
        """Where that program reaches that server."""
        if self.steering is not None:
            return self.steering.ports(f"{name}/{server}")
        if server != "postgres":
            return self._zookeeper.ports
        hosts = urlsplit(self._database_url()).netloc.rpartition("@")[2]
        return [int(host.rpartition(":")[2]) for host in hosts.split(",")]
