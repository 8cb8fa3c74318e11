"""Faults of ZooKeeper: sessions that end, the server away or frozen, the tree deleted. None of them excuses a run that
is run twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import Bite, Nemesis, Stage
from loadtest.chaos.watcher import silent
from ringcron.local.zookeeper import START_SECONDS

ZOOKEEPER: Final = "zookeeper"
BETWEEN_SECONDS: Final = 7.0
AWAY_SECONDS: Final = 6.0
"""A leader is away for so long: longer than a session."""
LONELY_SECONDS: Final = 1.0
CLIENT_SECONDS: Final = 5.0
LOST_EVENT: Final = b'"the ZooKeeper session is lost"'
_SUPER_SECRET: Final = 0xB3415C00


def password_of(session: int) -> bytes:
    """The password that ZooKeeper gives a session: 16 bytes of java.util.Random, seeded by its id."""
    mask = (1 << 48) - 1
    state = ((session ^ _SUPER_SECRET) ^ 0x5DEECE66D) & mask
    found = bytearray()
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & mask
        found += (state >> 16).to_bytes(4, "little")
    return bytes(found)


class ZooKeeperNemesis(Nemesis):
    """What they have in common: a client that comes and goes."""

    part = "zookeeper"

    def client(self, client_id: tuple[int, bytes] | None = None) -> KazooClient | None:
        """A connected client, or None."""
        client = KazooClient(self.arena.zookeeper.hosts, timeout=10.0, client_id=client_id, logger=silent())
        client.start_async().wait(CLIENT_SECONDS)
        if client.connected:
            return client
        client.stop()
        client.close()
        return None

    def heal(self) -> None:
        self.arena.zookeeper.send(signal.SIGCONT)
        self.arena.zookeeper.start()


class Expiring(ZooKeeperNemesis):
    """N11: a session ends although its owner lives: a second client takes it over and closes it. Every third time all
    sessions at once, coordinators' included."""

    number = "N11"
    title = "ZooKeeper sessions end although their owners live"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._ended = 0

    def round(self) -> Iterator[float]:
        with self.faults.during(self.number, ZOOKEEPER, after=self.arena.plan.session):
            sessions = self._sessions()
            self.random.shuffle(sessions)
            self.rounds += 1
            for session in sessions if self.rounds % 3 == 0 else sessions[:1]:
                self._end(session)
                yield 0.0
        yield BETWEEN_SECONDS

    def bite(self, history: History, seconds: float) -> Bite:
        noticed = sum(log.read_bytes().count(LOST_EVENT) for log in self.arena.logs.glob("*.log"))
        return Bite(
            number=self.number,
            what=f"sessions found lost by their owners, {self._ended} were ended",
            counted=noticed,
            wanted=self.scaled(3, seconds),
        )

    def _sessions(self) -> list[int]:
        client = self.client()
        if client is None:
            return []
        found = set()
        try:
            for folder in ("/workers", "/leader"):
                for name in client.get_children(folder):
                    stat = client.exists(f"{folder}/{name}")
                    if stat is not None and stat.ephemeralOwner:
                        found.add(stat.ephemeralOwner)
        except KazooException:
            pass  # what was seen so far will do
        finally:
            client.stop()
            client.close()
        return sorted(found)

    def _end(self, session: int) -> None:
        """Take the session over and close it: its owner learns of it at its next word."""
        client = self.client((session, password_of(session)))
        if client is not None:
            self._ended += client.client_id is not None and client.client_id[0] == session
            client.stop()
            client.close()


class Outage(ZooKeeperNemesis):
    """N10: ZooKeeper is killed and away for 5 s; or frozen for three session timeouts."""

    number = "N10"
    title = "ZooKeeper is away, or freezes"

    def round(self) -> Iterator[float]:
        zookeeper = self.arena.zookeeper
        self.rounds += 1
        with self.faults.during(self.number, ZOOKEEPER):
            if self.rounds % 2:
                zookeeper.kill()
                yield 5.0
                zookeeper.spawn()
            else:
                zookeeper.send(signal.SIGSTOP)
                try:
                    yield 3 * self.arena.plan.session
                finally:
                    zookeeper.send(signal.SIGCONT)
        yield BETWEEN_SECONDS


class LosingLeader(ZooKeeperNemesis):
    """N10Q: of a quorum of three the server that leads is killed, and comes back later. Every other round a follower is
    killed first: then there is no quorum until both are back."""

    number = "N10Q"
    title = "a quorum of three ZooKeeper servers loses its leader, or is none for a while"
    zookeepers = 3

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._others = 0

    def round(self) -> Iterator[float]:
        zookeeper = self.arena.zookeeper
        leader = zookeeper.leader()
        if leader is None:
            yield 1.0
            return
        self.rounds += 1
        with self.faults.during(self.number, ZOOKEEPER):
            if self.rounds % 2 == 0:
                self.random.choice([server for server in zookeeper.servers if server is not leader]).kill()
                yield LONELY_SECONDS
            leader.kill()
            yield AWAY_SECONDS
            if self.rounds % 2:
                self._others += zookeeper.leader() is not None
            zookeeper.spawn()
            waited = 0.0
            while not zookeeper.is_ready() and waited < START_SECONDS:
                waited += 0.5
                yield 0.5
        yield BETWEEN_SECONDS

    def bite(self, history: History, seconds: float) -> Bite:
        return Bite(
            number=self.number,
            what=f"times another server led while the leader was away, in {self.rounds} rounds",
            counted=self._others,
            wanted=self.scaled(1, seconds),
        )


class Deleting(ZooKeeperNemesis):
    """N24: somebody deletes the whole tree: members, leader, assignment."""

    number = "N24"
    title = "the tree in ZooKeeper is deleted"

    def round(self) -> Iterator[float]:
        with self.faults.during(self.number, ZOOKEEPER, after=self.arena.plan.session):
            client = self.client()
            if client is not None:
                for folder in ("/workers", "/leader", "/assignment"):
                    try:
                        client.delete(folder, recursive=True)
                    except KazooException:
                        continue  # not there, or filled again meanwhile
                client.stop()
                client.close()
                self.rounds += 1
        yield 2 * BETWEEN_SECONDS
