"""Watches the assignment in ZooKeeper, as a third party, and writes down every version that it sees.

Invariant: a version is written down once, in the order in which ZooKeeper made them. The term of a version is the
creation (czxid) of the leader's own node in the election: it rises with every election, also when the tree was made
anew. Where that node is gone already, it is what it was when it was last seen.

A watch tells only that something changed: of two versions in quick succession the first may not be seen.
"""

from __future__ import annotations

import logging
import queue
import re
import threading
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.retry import KazooRetry

from loadtest.chaos.history import Assigned
from ringcron.assignment import Assignment, decode
from ringcron.clock import SystemClock
from ringcron.slots import SLOT_COUNT

LOOK_SECONDS: Final = 0.5
_CONTENDER: Final = re.compile(r"(?P<id>.+)-\d{10}")


class Watcher:
    """A context: watches from entry to exit. `seen` is in the elapsed clock's seconds until it is carried over."""

    def __init__(self, hosts: str, root: str = "") -> None:
        self.seen: list[Assigned] = []
        self.last: Assignment | None = None
        self.members: frozenset[str] = frozenset()
        """Who was registered when it was last looked."""
        self.leaders: tuple[str, ...] = ()
        """The contenders, the lowest first."""
        self._root = root
        self._clock = SystemClock()
        self._client = KazooClient(
            hosts,
            timeout=30.0,
            connection_retry=KazooRetry(max_tries=-1, max_delay=1),
            command_retry=KazooRetry(max_tries=0),
            logger=silent(),
        )
        self._hints: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._terms: dict[str, int] = {}
        self._thread = threading.Thread(target=self._watch, name="chaos watcher", daemon=True)
        self._mzxid = 0
        # kazoo keeps watches in a set: one function, or every look would add one more.
        self._on_change = lambda event: self._hints.put(True)

    def __enter__(self) -> Watcher:
        self._client.start_async()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._hints.put(False)
        self._thread.join(10)
        self._client.stop()
        self._client.close()

    def _watch(self) -> None:
        while True:
            try:
                if not self._hints.get(timeout=LOOK_SECONDS):
                    return
            except queue.Empty:
                pass
            try:
                self._look()
            except (KazooException, OSError):
                continue  # ZooKeeper is away: that is what nemeses are for

    def _look(self) -> None:
        if not self._client.connected:
            return
        data, stat = self._client.get(f"{self._root}/assignment", watch=self._on_change)
        names = self._client.get_children(f"{self._root}/leader")
        contenders = []
        for name in names:
            found = self._client.exists(f"{self._root}/leader/{name}")
            match = _CONTENDER.fullmatch(name)
            if found is not None and match is not None:
                contenders.append((int(name[-10:]), match["id"]))
                self._terms[match["id"]] = found.czxid
        self.leaders = tuple(id_ for _, id_ in sorted(contenders))
        self.members = frozenset(self._client.get_children(f"{self._root}/workers"))
        if stat.mzxid <= self._mzxid:
            return
        self._mzxid = stat.mzxid
        assignment = decode(data, SLOT_COUNT)
        self.last = assignment
        term = self._terms.get(assignment.leader, self.seen[-1].term if self.seen else 0)
        at = self._clock.elapsed()
        for ring in assignment.rings:
            self.seen.append(
                Assigned(
                    at=at,
                    epoch=assignment.epoch,
                    term=term,
                    group=ring.handlers[0],
                    arcs=tuple((arc.lo, arc.hi, cell.owner.id) for arc, cell in ring.arcs if cell.owner is not None),
                )
            )


def silent() -> logging.Logger:
    """For kazoo: that ZooKeeper is away is no news here."""
    logger = logging.Logger("chaos watcher")
    logger.addHandler(logging.NullHandler())
    return logger
