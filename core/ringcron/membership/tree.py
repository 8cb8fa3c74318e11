"""What the coordinator and the workers read from ZooKeeper, and the one write that publishes an assignment.

Invariants: a watch is only a hint that something may have changed; whoever needs to know reads again, and does so now
and then without any hint. The assignment is written only in a transaction that fails unless the writer still leads and
nobody has written since it was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kazoo.client import TransactionRequest
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import WatchedEvent

from ringcron.members import MemberNode
from ringcron.membership.session import Session


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """The data of the assignment's node, and what names this version of it."""

    data: bytes
    version: int
    mzxid: int


class Published(Enum):
    """What became of an attempt to publish."""

    DONE = "done"
    DEPOSED = "deposed"  # the writer's own node is gone: it does not lead any more
    OVERTAKEN = "overtaken"  # the assignment is not the one that was read


class Tree:
    """The tree under a session's root. Folders that are missing are created."""

    def __init__(self, session: Session, notify: Callable[[], None]) -> None:
        """`notify` is called in the event loop when a watch fires."""
        self._session = session
        self._notify = notify
        self._workers = f"{session.root}/workers"
        self._assignment = f"{session.root}/assignment"
        self._known: dict[str, MemberNode] = {}  # by path, as last read
        self._hinted: set[str] = set()  # paths of which a watch has fired since
        self._afresh = True
        # kazoo keeps watches in a set: one function each, or every read would add one more.
        self._on_change = lambda event: session.post(notify)
        self._on_member = lambda event: session.post(self._member_changed, event)

    async def assignment(self) -> Stored | None:
        """The assignment as it stands, None where there is none. Raises MembershipUnavailable."""
        try:
            data, stat = await self._session.call(lambda client: client.get_async(self._assignment, self._on_change))
        except NoNodeError:
            if await self._session.call(lambda client: client.exists_async(self._assignment, self._on_change)):
                self._notify()  # it has come in between
            return None
        return Stored(data=data, version=stat.version, mzxid=stat.mzxid)

    async def members(self, *, afresh: bool) -> list[MemberNode]:
        """The nodes under `workers`. Those known and not hinted at since are read again only when `afresh`.

        Raises MembershipUnavailable.
        """
        if afresh or self._afresh:
            self._afresh = False
            self._known.clear()
        try:
            names = await self._session.call(lambda client: client.get_children_async(self._workers, self._on_change))
        except NoNodeError:
            await self._session.call(lambda client: client.ensure_path_async(self._workers))
            names = await self._session.call(lambda client: client.get_children_async(self._workers, self._on_change))
        nodes = await asyncio.gather(*(self._member(name) for name in names))
        self._known = {f"{self._workers}/{node.id}": node for node in nodes if node is not None}
        return list(self._known.values())

    async def publish(self, data: bytes, *, over: Stored | None, while_exists: str) -> Published:
        """Write the assignment over the version that was read, while the node `while_exists` is there.

        Raises MembershipUnavailable when it is not known whether it was written.
        """

        def transaction(request: TransactionRequest) -> TransactionRequest:
            request.check(while_exists, -1)
            if over is None:
                request.create(self._assignment, data)
            else:
                request.set_data(self._assignment, data, over.version)
            return request

        check, write = await self._session.call(lambda client: transaction(client.transaction()).commit_async())
        if isinstance(check, NoNodeError):
            return Published.DEPOSED
        return Published.OVERTAKEN if isinstance(write, Exception) else Published.DONE

    async def _member(self, name: str) -> MemberNode | None:
        path = f"{self._workers}/{name}"
        if path in self._known and path not in self._hinted:
            return self._known[path]
        self._hinted.discard(path)
        try:
            data, stat = await self._session.call(lambda client: client.get_async(path, self._on_member))
        except NoNodeError:
            return None
        return MemberNode(id=name, data=data, czxid=stat.czxid)

    def _member_changed(self, event: WatchedEvent) -> None:
        if event.path is None:  # the connection was lost, and the watches with it
            self._afresh = True
        else:
            self._hinted.add(event.path)
        self._notify()
