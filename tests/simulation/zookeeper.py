"""A ZooKeeper server as its clients see it: a tree with versions, sessions, ephemeral nodes, watches, transactions.

Invariant: as of the real one: requests of one session are carried out in order; a session ends when the server has not
heard of it for its timeout, never before, and its ephemeral nodes with it; a transaction is carried out whole or not at
all; a watch fires once. What a server that was down forgets is nothing but the connections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kazoo.exceptions import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
    ZookeeperError,
)


class Stat(NamedTuple):
    """Of a znode's stat what our programs look at."""

    czxid: int
    mzxid: int
    version: int
    ephemeralOwner: int


@dataclass(slots=True)
class Node:
    """A znode. `owner` is the session of an ephemeral one, else 0."""

    data: bytes
    czxid: int
    mzxid: int
    owner: int
    version: int = 0
    sequence: int = 0

    @property
    def stat(self) -> Stat:
        return Stat(self.czxid, self.mzxid, self.version, self.owner)


@dataclass(slots=True)
class SessionEntry:
    """A session as the server keeps it."""

    id: int
    seconds: float
    heard_at: float
    ended: bool = False
    paths: set[str] = field(default_factory=set)


Watch = Callable[[str], object]
"""Told the path."""
Write = tuple[str, str, Any, Any]
"""A part of a transaction: (kind, path, data or None, version)."""


class ZooKeeper:
    """The server. What fails, fails with kazoo's exceptions."""

    def __init__(self, on_write: Callable[[str, Node | None, Node | None, Any], object]) -> None:
        """`on_write` is told of each change: path, the node before, the node after, who."""
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0, 0)}
        self.sessions: dict[int, SessionEntry] = {}
        self._watches: dict[tuple[str, str], dict[Any, Watch]] = {}
        self._zxid = 0
        self._on_write = on_write

    # --- sessions ---

    def open_session(self, seconds: float, now: float) -> SessionEntry:
        self._zxid += 1
        session = SessionEntry(id=1000 + self._zxid, seconds=seconds, heard_at=now)
        self.sessions[session.id] = session
        return session

    def end_session(self, session: SessionEntry) -> None:
        if not session.ended:
            session.ended = True
            for path in sorted(session.paths):
                if path in self.nodes:
                    self._delete(path, "the end of its session")

    # --- reads ---

    def get(self, path: str, watch: tuple[Any, Watch] | None) -> tuple[bytes, Stat]:
        node = self._node(path)
        self._watch("data", path, watch)
        return node.data, node.stat

    def exists(self, path: str, watch: tuple[Any, Watch] | None) -> Stat | None:
        self._watch("data", path, watch)
        node = self.nodes.get(path)
        return None if node is None else node.stat

    def children(self, path: str, watch: tuple[Any, Watch] | None) -> list[str]:
        self._node(path)
        self._watch("children", path, watch)
        prefix = path.rstrip("/") + "/"
        return [
            name[len(prefix) :] for name in self.nodes if name.startswith(prefix) and "/" not in name[len(prefix) :]
        ]

    # --- writes ---

    def create(self, session: SessionEntry, path: str, data: bytes, *, ephemeral: bool, sequence: bool) -> str:
        parent = self._node(_parent(path))
        if sequence:
            path = f"{path}{parent.sequence:010d}"
        if path in self.nodes:
            raise NodeExistsError
        parent.sequence += 1
        self._zxid += 1
        node = Node(data, self._zxid, self._zxid, session.id if ephemeral else 0)
        self.nodes[path] = node
        if ephemeral:
            session.paths.add(path)
        self._on_write(path, None, node, session)
        self._fire("data", path)
        self._fire("children", _parent(path))
        return path

    def set(self, session: SessionEntry, path: str, data: bytes, version: int) -> Stat:
        node = self._node(path)
        if version not in (-1, node.version):
            raise BadVersionError
        self._zxid += 1
        after = Node(data, node.czxid, self._zxid, node.owner, node.version + 1, node.sequence)
        self.nodes[path] = after
        self._on_write(path, node, after, session)
        self._fire("data", path)
        return after.stat

    def delete(self, session: SessionEntry, path: str) -> None:
        self._node(path)
        self._delete(path, session)

    def ensure_path(self, session: SessionEntry, path: str) -> None:
        made = ""
        for part in path.strip("/").split("/"):
            made += f"/{part}"
            if made not in self.nodes:
                self.create(session, made, b"", ephemeral=False, sequence=False)

    def delete_tree(self, top: str) -> None:
        """What a person may do by hand."""
        for path in sorted((path for path in self.nodes if path == top or path.startswith(f"{top}/")), reverse=True):
            self._delete(path, "a person")

    def transact(self, session: SessionEntry, writes: list[Write]) -> list[Any]:
        for number, (kind, path, _, version) in enumerate(writes):
            error = self._refusal(kind, path, version)
            if error is not None:
                after = [RuntimeInconsistency()] * (len(writes) - number - 1)
                return [*[RolledBackError()] * number, error, *after]
        done: list[Any] = []
        for kind, path, data, version in writes:
            if kind == "create":
                done.append(self.create(session, path, data, ephemeral=False, sequence=False))
            elif kind == "set":
                done.append(self.set(session, path, data, version))
            else:
                done.append(True)
        return done

    def _refusal(self, kind: str, path: str, version: int) -> ZookeeperError | None:
        if kind == "create":
            if path in self.nodes:
                return NodeExistsError()
            return None if _parent(path) in self.nodes else NoNodeError()
        node = self.nodes.get(path)
        if node is None:
            return NoNodeError()
        return BadVersionError() if version not in (-1, node.version) else None

    def _delete(self, path: str, who: Any) -> None:
        node = self.nodes.pop(path)
        if node.owner in self.sessions:
            self.sessions[node.owner].paths.discard(path)
        self._zxid += 1
        self._on_write(path, node, None, who)
        self._fire("data", path)
        self._fire("children", path)
        self._fire("children", _parent(path))

    def _node(self, path: str) -> Node:
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError
        return node

    # --- watches ---

    def _watch(self, kind: str, path: str, watch: tuple[Any, Watch] | None) -> None:
        if watch is not None:
            self._watches.setdefault((kind, path), {})[watch[0]] = watch[1]

    def _fire(self, kind: str, path: str) -> None:
        for watch in self._watches.pop((kind, path), {}).values():
            watch(path)

    def forget_watches(self, client: Any) -> None:
        """The client's connection is gone. Each key of a watch begins with its client."""
        for watches in self._watches.values():
            for key in [key for key in watches if key[0] is client]:
                del watches[key]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"
