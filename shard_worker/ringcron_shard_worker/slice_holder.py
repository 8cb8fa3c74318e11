"""The slice that this worker holds: its arcs at its epoch.

    no assignment names us ──granted──▶ proven ──no proof for ⅔ of the session──▶ unproven (same arcs)
              ▲                        │      ▲                                        │
              └──registered anew───────┘      └──registered, and the assignment read───┘

Invariants: `proven` slices of live workers are disjoint. What an assignment takes away is given up as soon as it is
read: no claim begins on it any more; the epoch is acknowledged only when the claims that began before have ended. An
epoch below one that was acknowledged grants nothing. Without a proven session the last arcs are kept, unproven: the
claimer then waits the helper's delay, so that a possible successor comes first. What is due never waits for ZooKeeper.

The leader is authoritative for the assignment, this worker for what it has acknowledged.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import structlog

from ringcron import __version__
from ringcron.assignment import Assignment, decode
from ringcron.clock import Clock
from ringcron.errors import BadAssignment, MembershipUnavailable
from ringcron.members import Ack, Incarnation, encode_member
from ringcron.membership import Registration, Session, Stored, Tree
from ringcron.models import Holding, Slice
from ringcron.ring import WHOLE_RING
from ringcron.settings import WorkerSettings
from ringcron.slots import SLOT_COUNT

_log = structlog.get_logger(__name__)


class SliceHolder:
    """Follows the assignment. Without ZooKeeper it holds the whole ring, at epoch 0."""

    def __init__(self, settings: WorkerSettings, *, worker_id: str, handlers: tuple[str, ...], clock: Clock) -> None:
        self.changed = asyncio.Event()
        """Set at each change of the holding; whoever waits for it clears it."""
        self.reshaped = asyncio.Event()
        """The same, for who reports it."""
        self._worker_id = worker_id
        self._clock = clock
        self._wake = asyncio.Event()
        self._slices: tuple[Slice, ...] = ()
        self._applied = Ack()
        self._named: Incarnation | None = None  # as whom the assignment last read names us
        self._followed_at: float | None = None  # when the last complete look at our node and the assignment began
        self._acked = Ack()
        self._claims: Counter[int] = Counter()  # claims in flight, by the revocation count that they began under
        self._revocations = 0
        self._told: Holding | None = None
        self._read: tuple[Stored, Incarnation] | None = None
        self._follower: asyncio.Task[None] | None = None
        self._session: Session | None = None
        if settings.zookeeper is None:
            self._slices = (Slice(handlers=handlers, arcs=(WHOLE_RING,)),)
            return

        def data() -> bytes:
            return encode_member(
                name=settings.name,
                capacity=settings.concurrency,
                handlers=handlers,
                version=__version__,
                acked=self._acked,
            )

        self._session = Session(
            settings.zookeeper, session_seconds=settings.session_seconds, clock=clock, notify=self._wake.set
        )
        self._registration = Registration(self._session, worker_id, data)
        self._tree = Tree(self._session, self._wake.set)

    def holding(self) -> Holding:
        """What may be claimed now."""
        return Holding(epoch=self._applied.epoch, slices=self._slices, proven=self._proven())

    @contextlib.asynccontextmanager
    async def claiming(self) -> AsyncIterator[Holding]:
        """Hold back the acknowledgement of any revocation that comes while a claim is in flight."""
        began_under = self._revocations
        self._claims[began_under] += 1
        try:
            yield self.holding()
        finally:
            self._claims[began_under] -= 1
            if began_under != self._revocations:
                self._wake.set()

    async def start(self) -> None:
        """Join, and follow the assignment from now on. Does not wait for ZooKeeper."""
        if self._session is not None:
            await self._session.start()
            self._follower = asyncio.create_task(self._follow_forever())

    async def leave(self) -> None:
        """Give everything up, wait for the claims in flight, and delete our node: the slices move at once."""
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
        self._hold((), self._applied, named=None)
        while self._claims_in_flight():
            self._wake.clear()
            await self._wake.wait()
        if self._session is not None:
            with contextlib.suppress(MembershipUnavailable):  # the session's end deletes the node as well, later
                await self._registration.withdraw()
            await self._session.stop()

    def _proven(self) -> bool:
        if self._session is None:
            return bool(self._slices)
        if self._named is None or self._named.czxid != self._registration.czxid or self._followed_at is None:
            return False
        # Not any answer will do: one that only says that the session lives comes before what was revoked meanwhile.
        return self._session.is_recent(self._followed_at)

    async def _follow_forever(self) -> None:
        assert self._session is not None
        unavailable = False
        while True:
            self._wake.clear()
            proof_due = self._clock.elapsed() + self._session.call_seconds
            try:
                await self._follow()
                unavailable = False
            except MembershipUnavailable as error:
                if self._session.is_starting():
                    _log.debug("connecting to ZooKeeper", reason=str(error))
                elif not unavailable:
                    _log.warning("the assignment cannot be followed", reason=str(error))
                    unavailable = True
            except Exception:
                _log.exception("following the assignment failed")
                await asyncio.sleep(self._session.call_seconds)
            self._tell()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(proof_due - self._clock.elapsed()):
                    await self._wake.wait()

    async def _follow(self) -> None:
        """Be registered, hold what the assignment says, and acknowledge it once nothing older is in flight.

        Raises MembershipUnavailable.
        """
        began_at = self._clock.elapsed()
        czxid = await self._registration.verify()
        stored = await self._tree.assignment()
        if czxid is None or stored is None:
            self._named, self._read = None, None
            return
        incarnation = Incarnation(self._worker_id, czxid)
        if self._read != (stored, incarnation):
            try:
                self._apply(decode(stored.data, SLOT_COUNT), incarnation)
            except BadAssignment as error:
                _log.error("the assignment is not understood", reason=str(error))
                self._named = None
            self._read = (stored, incarnation)
        self._followed_at = began_at
        if self._named and self._acked != self._applied and not self._claims_in_flight():
            self._acked = self._applied
            await self._registration.write()

    def _apply(self, assignment: Assignment, incarnation: Incarnation) -> None:
        if assignment.epoch < self._acked.epoch:  # older than what we told the leader, or of a tree that was made anew
            self._named = None
            return
        named = incarnation if incarnation in assignment.members else None
        slices = assignment.granted(incarnation)
        if self._hold(slices, Ack(assignment.epoch, assignment.lineage), named=named):
            _log.info(
                "slice changed",
                epoch=assignment.epoch,
                named=named is not None,
                slots=sum(len(arc) for part in slices for arc in part.arcs),
                arcs=sum(len(part.arcs) for part in slices),
            )

    def _hold(self, slices: tuple[Slice, ...], applied: Ack, *, named: Incarnation | None) -> bool:
        """Hold `slices` from now on; returns whether they are others than before."""
        differ = slices != self._slices
        if differ:
            self._revocations += 1  # it may only have grown; waiting for the claims in flight costs nothing then
        self._slices, self._applied, self._named = slices, applied, named
        self._tell()
        return differ

    def _claims_in_flight(self) -> int:
        """Claims that began under an older slice."""
        self._claims = +self._claims
        return sum(count for began_under, count in self._claims.items() if began_under != self._revocations)

    def _tell(self) -> None:
        holding = self.holding()
        if holding != self._told:
            self._told = holding
            self.changed.set()
            self.reshaped.set()
