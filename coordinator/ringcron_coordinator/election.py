"""Which coordinator leads.

    leader/<coordinator id>-<sequence>     ephemeral, one per coordinator; the lowest sequence leads

Invariants: whoever is lowest stays lowest as long as its node exists, so "my node exists" is what every write of a
leader checks, in its own transaction; a node's path holds the coordinator's id, so nobody else's node can pass for it,
not even after the tree was made anew. Leadership is never remembered: `contend` asks ZooKeeper each time.

kazoo's Election is not used: it does not stop the old leader when the session is lost, and cannot be entered again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import structlog
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import ZnodeStat

from ringcron.errors import SessionLost
from ringcron.membership import Session

_CONTENDER: Final = re.compile(r"(?P<id>.+)-(?P<sequence>\d{10})")

_log = structlog.get_logger(__name__)


class Election:
    """One coordinator's part in the election. `id` is unlike every other process's."""

    def __init__(self, session: Session, id: str, notify: Callable[[], None]) -> None:
        """`notify` is called in the event loop when the contenders may have changed."""
        self._session = session
        self._id = id
        self._folder = f"{session.root}/leader"
        self._on_change = lambda event: session.post(notify)

    async def contend(self) -> str | None:
        """Be a contender. The path of our node if we lead now, else None. Raises MembershipUnavailable."""
        session_id = self._session.id
        ours = await self._ours(session_id)
        if not ours:
            await self._create()
            ours = await self._ours(session_id)
        for path in ours[1:]:  # a creation whose answer was lost, and that was tried again
            _log.info("deleting a second contender of ours", node=path)
            await self._delete(path)
        contenders = await self._contenders()
        if not ours or session_id is None or session_id != self._session.id:
            raise SessionLost
        return ours[0] if contenders and f"{self._folder}/{contenders[0]}" == ours[0] else None

    async def withdraw(self) -> None:
        """Contend no longer. Raises MembershipUnavailable."""
        for path in await self._ours(self._session.id):
            await self._delete(path)

    async def _ours(self, session_id: int | None) -> list[str]:
        """Paths of the nodes that this session has created, the lowest first."""
        found = []
        for name in await self._contenders():
            path = f"{self._folder}/{name}"
            if not name.startswith(f"{self._id}-"):
                continue
            stat = await self._stat(path)
            if stat is not None and stat.ephemeralOwner == session_id:
                found.append(path)
        return found

    async def _stat(self, path: str) -> ZnodeStat | None:
        return await self._session.call(lambda client: client.exists_async(path))

    async def _contenders(self) -> list[str]:
        """The names of all contenders, the lowest first."""
        try:
            names = await self._session.call(lambda client: client.get_children_async(self._folder, self._on_change))
        except NoNodeError:
            return []
        found = [match for name in names if (match := _CONTENDER.fullmatch(name))]
        return [match[0] for match in sorted(found, key=lambda match: (int(match["sequence"]), match[0]))]

    async def _create(self) -> None:
        prefix = f"{self._folder}/{self._id}-"
        try:
            await self._session.call(lambda client: client.create_async(prefix, ephemeral=True, sequence=True))
        except NoNodeError:
            await self._session.call(lambda client: client.ensure_path_async(self._folder))
            await self._session.call(lambda client: client.create_async(prefix, ephemeral=True, sequence=True))

    async def _delete(self, path: str) -> None:
        try:
            await self._session.call(lambda client: client.delete_async(path))
        except NoNodeError:
            pass  # as wanted
