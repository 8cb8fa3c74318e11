"""Our own node in ZooKeeper.

Invariant: a node that another session owns is never written or deleted, not even one with our id; it goes when its
session does. What we registered is ours only for the session that created it.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from kazoo.exceptions import NodeExistsError, NoNodeError

from ringcron.membership.session import Session

_log = structlog.get_logger(__name__)


class Registration:
    """An ephemeral node that is created again whenever it is missing."""

    def __init__(self, session: Session, id: str, data: Callable[[], bytes]) -> None:
        """`data` gives what the node must hold now."""
        self._session = session
        self._folder = f"{session.root}/workers"
        self._path = f"{self._folder}/{id}"
        self._data = data
        self._owned: tuple[int, int] | None = None  # (session, czxid)

    @property
    def czxid(self) -> int | None:
        """What created the node; None while it is not known to stand there for our session."""
        return self._owned[1] if self._owned is not None and self._owned[0] == self._session.id else None

    async def verify(self) -> int | None:
        """Make sure that the node is there, is ours and holds the right data; returns its czxid.

        None while a node of that id belongs to another session. Raises MembershipUnavailable.
        """
        session_id = self._session.id
        try:
            found, stat = await self._session.call(lambda client: client.get_async(self._path))
        except NoNodeError:
            return await self._create()
        if session_id is None or stat.ephemeralOwner != session_id:
            _log.warning("another session holds our node, waiting for its end", node=self._path)
            self._owned = None
            return None
        self._owned = (session_id, stat.czxid)
        if found != self._data():
            await self.write()
        return self.czxid

    async def write(self) -> None:
        """Write the data into the node, if it is ours. Raises MembershipUnavailable."""
        if self.czxid is None:
            return
        data = self._data()
        try:
            await self._session.call(lambda client: client.set_async(self._path, data))
        except NoNodeError:
            self._owned = None

    async def withdraw(self) -> None:
        """Delete the node, if it is ours. Raises MembershipUnavailable."""
        if self.czxid is None:
            return
        self._owned = None
        try:
            await self._session.call(lambda client: client.delete_async(self._path))
        except NoNodeError:
            pass  # as wanted

    async def _create(self) -> int | None:
        session_id, data = self._session.id, self._data()
        try:
            _, stat = await self._session.call(
                lambda client: client.create_async(self._path, data, ephemeral=True, include_data=True)
            )
        except NoNodeError:
            await self._session.call(lambda client: client.ensure_path_async(self._folder))
            return await self.verify()
        except NodeExistsError:  # an earlier try of ours whose answer was lost, or somebody else's
            return await self.verify()
        if session_id is None:
            return None
        self._owned = (session_id, stat.czxid)
        return self.czxid
