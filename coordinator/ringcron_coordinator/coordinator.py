"""The coordinator: contend, and while leading look after the slices and the duties.

Invariants: each round asks ZooKeeper anew who leads, so nobody leads by memory. A session that is lost, or can no
longer be proved, ends leadership at once. Nothing due waits for a coordinator: without one the workers keep their
slices, and help.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog

from ringcron import metrics
from ringcron.assignment import Assignment
from ringcron.clock import Clock
from ringcron.errors import BadAssignment, MembershipUnavailable
from ringcron.membership import Published, Session, Tree
from ringcron.settings import CoordinatorSettings
from ringcron.slots import SLOT_COUNT
from ringcron_coordinator.duties import Duties
from ringcron_coordinator.election import Election
from ringcron_coordinator.leader import Leader
from ringcron_coordinator.watchdog import Watchdog

GATHER_SECONDS: Final = 0.05
"""Hints that come within this time are answered by one round."""

_log = structlog.get_logger(__name__)


class Coordinator:
    """One coordinator. `id` is unlike every other process's."""

    def __init__(self, settings: CoordinatorSettings, *, id: str, clock: Clock) -> None:
        self.leader: Leader | None = None
        """Our term; None while we do not lead."""
        self._settings = settings
        self._id = id
        self._clock = clock
        self._duties: Duties | None = None
        self._wake = asyncio.Event()
        self._cut_off = False

    async def run(self, drain: asyncio.Event) -> None:
        """Work until `drain` is set, then leave the election, so that another one leads at once."""
        if self._settings.zookeeper is None:
            await self._perform_duties_alone(drain)
            return
        session = Session(
            self._settings.zookeeper,
            session_seconds=self._settings.session_seconds,
            clock=self._clock,
            notify=self._wake.set,
        )
        election = Election(session, self._id, self._wake.set)
        tree = Tree(session, self._wake.set)
        watchdog = Watchdog(self._settings.session_seconds)
        drained = asyncio.create_task(self._wake_when(drain))
        await session.start()
        watchdog.start()
        try:
            while not drain.is_set():
                self._wake.clear()
                proof_due = self._clock.elapsed() + session.call_seconds
                went_well = await self._round(session, election, tree)
                watchdog.beat()
                await self._pause(proof_due, went_well=went_well)
        finally:
            drained.cancel()
            watchdog.stop()
            await self._resign("the coordinator ends")
            with contextlib.suppress(MembershipUnavailable):
                await election.withdraw()
            await session.stop()

    async def _round(self, session: Session, election: Election, tree: Tree) -> bool:
        """Contend, and take one step if we lead. Returns whether nothing went wrong."""
        try:
            node = await election.contend()
            if self.leader is not None and self.leader.node != node:
                await self._resign("another coordinator leads")
            if node is not None:
                self._lead(node, tree)
            self._cut_off = False
            if self.leader is not None and await self.leader.step() is Published.DEPOSED:
                await self._resign("a write was refused: our node in the election is gone")
            return True
        except MembershipUnavailable as error:
            if not self._cut_off:
                _log.warning("ZooKeeper does not answer", reason=str(error))
            self._cut_off = True
            if not session.proven():
                await self._resign("the session cannot be proved")
        except BadAssignment as error:
            _log.error("slices are left as they are", reason=str(error))
        except Exception:
            _log.exception("a round failed")
        return False

    async def _pause(self, proof_due: float, *, went_well: bool) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        pause = proof_due - self._clock.elapsed()
        if self.leader is not None and went_well:
            pause = min(pause, self.leader.wait_seconds())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._wake.wait()

    def _lead(self, node: str, tree: Tree) -> None:
        if self.leader is not None:
            return
        self.leader = Leader(
            self._settings,
            tree,
            id=self._id,
            node=node,
            ring_size=SLOT_COUNT,
            clock=self._clock,
            note=self._note,
        )
        self._perform_duties()
        _log.info("leading", node=node)

    async def _resign(self, reason: str) -> None:
        if self.leader is None:
            return
        self.leader.clear()
        self.leader = None
        _log.info("leading no longer", reason=reason)
        await self._end_duties()

    def _perform_duties(self) -> None:
        metrics.COORDINATOR_LEADER.set(1)
        self._duties = Duties(self._settings, clock=self._clock)
        self._duties.start()

    async def _end_duties(self) -> None:
        metrics.COORDINATOR_LEADER.set(0)
        duties, self._duties = self._duties, None
        if duties is not None:
            await duties.stop()

    def _note(self, before: Assignment | None, published: Assignment) -> None:
        if self._duties is not None:
            self._duties.epochs.note(before, published)

    async def _perform_duties_alone(self, drain: asyncio.Event) -> None:
        """Without ZooKeeper there are no slices to assign; upkeep takes a lock in the database, so two do no harm."""
        self._perform_duties()
        await drain.wait()
        await self._end_duties()

    async def _wake_when(self, drain: asyncio.Event) -> None:
        await drain.wait()
        self._wake.set()
