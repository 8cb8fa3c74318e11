"""What the leader does about the slices: read everything, decide, publish at most one version, say it in one sentence.

Invariants: nothing is remembered that ZooKeeper could contradict but the times at which things were first seen, so a
new leader goes on where the old one stopped. Every write is refused by ZooKeeper unless the writer's node in the
election still exists and the assignment is the version that was read.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Hashable, Iterable
from typing import Final

import structlog

from ringcron import failpoints, metrics
from ringcron.assignment import Assignment, Revocation, Ring, decode, encode
from ringcron.clock import Clock
from ringcron.errors import BadAssignment, ForeignAssignment
from ringcron.members import Incarnation, MemberFault, Members, read_members
from ringcron.membership import PROOF_SHARE, Published, Stored, Tree
from ringcron.settings import CoordinatorSettings
from ringcron_coordinator.handover import awaited, next_assignment
from ringcron_coordinator.planner import plan
from ringcron_coordinator.settling import Patience, Quiet

NAMES_SHOWN: Final = 4

_log = structlog.get_logger(__name__)


class Leader:
    """One term of office."""

    def __init__(
        self,
        settings: CoordinatorSettings,
        tree: Tree,
        *,
        id: str,
        node: str,
        ring_size: int,
        clock: Clock,
        note: Callable[[Assignment | None, Assignment], None] = lambda before, published: None,
    ) -> None:
        """`node` is the path of our node in the election. `note` is told what was published, and over what."""
        self.node = node
        self._assignment: Assignment | None = None
        self._tree = tree
        self._note = note
        self._id = id
        self._ring_size = ring_size
        self._clock = clock
        self._quiet = Quiet(settings.quiet_seconds, settings.quiet_cap_seconds)
        # Never less than an owner's proof lasts: whoever is passed over does not hold its slots proven any more.
        self._patience = Patience(max(settings.ack_seconds, settings.session_seconds * PROOF_SHARE))
        self._relist_seconds = settings.relist_seconds
        self._relist_due = clock.elapsed()
        self._plan: tuple[Ring, ...] | None = None  # None until the members have been quiet once in this term
        self._faults: frozenset[MemberFault] = frozenset()
        self._behind = False
        self._losses = 0  # how often the assignment was found lost, or behind what members have seen
        self._broken: Stored | None = None

    async def step(self) -> Published | None:
        """Publish the next version if it is time for one.

        Raises MembershipUnavailable; BadAssignment when it is not ours to overwrite, or too large.
        """
        stored, members = await self._look()
        failpoints.reach("leader.looked")
        now = self._clock.elapsed()
        previous = self._assignment
        behind = previous is None or any(acked.epoch > previous.epoch for acked in members.live.values())
        if behind and not self._behind:
            self._losses += 1
        self._behind = behind
        self._quiet.see((self._losses, _outline(members)), now)
        self._patience.see({} if previous is None else awaited(previous, members.live), now)
        settled, granting = self._quiet.due(), self._patience.due()
        planning = settled is not None and settled <= now
        if not planning and (self._plan is None or granting is None or granting > now):
            return None
        passed_over = self._patience.passed_over(now)
        # In a thread: a large fleet with many rings takes a while, and the session must be proved meanwhile.
        following = await asyncio.to_thread(self._following, previous, members, passed_over, planning)
        published = None
        if following is not None:
            failpoints.reach("leader.planned")
            published = await self._tree.publish(encode(following), over=stored, while_exists=self.node)
            if published is not Published.DONE:
                return published  # nothing counts as acted on: the next step decides again
            failpoints.reach("leader.published")
            self._behind = False  # lost once more is another loss, also when it was never seen in between
            self._patience.act()
            self._say(following, members, passed_over)
            self._note(previous, following)
        if planning:
            self._quiet.act()
        return published

    def _following(
        self, previous: Assignment | None, members: Members, passed_over: frozenset[Revocation], planning: bool
    ) -> Assignment | None:
        if planning or self._plan is None:
            self._plan = plan(members.planned, self._ring_size)
        return next_assignment(
            previous,
            self._plan,
            members.live,
            passed_over=passed_over,
            ring_size=self._ring_size,
            lineage=secrets.token_hex(4),
            leader=self._id,
            cause=_cause(previous, members),
        )

    def wait_seconds(self) -> float:
        """How long nothing has to be done if nothing is heard."""
        due = [self._relist_due, self._quiet.due(), self._patience.due() if self._plan is not None else None]
        return max(0.0, min(moment for moment in due if moment is not None) - self._clock.elapsed())

    async def _look(self) -> tuple[Stored | None, Members]:
        """Read the assignment and the members."""
        now = self._clock.elapsed()
        afresh = now >= self._relist_due
        stored = await self._tree.assignment()
        members = read_members(await self._tree.members(afresh=afresh))
        if afresh:
            self._relist_due = now + self._relist_seconds
        self._assignment = self._decode(stored)
        self._report(members)
        return stored, members

    def _decode(self, stored: Stored | None) -> Assignment | None:
        """None where there is none that can be read: it is then made anew, as if it had been deleted."""
        if stored is None:
            return None
        try:
            return decode(stored.data, self._ring_size)
        except ForeignAssignment:  # not ours to overwrite: a newer coordinator may lead soon
            raise
        except BadAssignment as error:
            if self._broken != stored:
                _log.error("the assignment is broken and will be made anew", reason=str(error))
            self._broken = stored
            return None

    def clear(self) -> None:
        """Show nothing any more: the next leader does."""
        for metric in (
            metrics.MEMBERS,
            metrics.BAD_MEMBERS,
            metrics.ASSIGNMENT_EPOCH,
            metrics.SLOTS_UNOWNED,
            metrics.SLOTS_IN_TRANSIT,
        ):
            metric.clear()

    def _report(self, members: Members) -> None:
        unowned = self._ring_size
        if self._assignment is not None:
            unowned = sum(len(arc) for arc in self._assignment.unowned())
        metrics.MEMBERS.set(len(members.live))
        metrics.BAD_MEMBERS.set(len(members.faults))
        metrics.ASSIGNMENT_EPOCH.set(0 if self._assignment is None else self._assignment.epoch)
        metrics.SLOTS_UNOWNED.set(unowned)
        metrics.SLOTS_IN_TRANSIT.set(0 if self._assignment is None else _slots_in_transit(self._assignment))
        faults = frozenset(members.faults)
        for fault in sorted(faults - self._faults):
            _log.warning("member passed over", member=fault.id, reason=fault.reason)
        self._faults = faults

    def _say(self, published: Assignment, members: Members, passed_over: frozenset[Revocation]) -> None:
        for revocation in passed_over:
            owners = self._patience.missing(revocation)
            metrics.ACKS_OVERDUE.inc(len(owners))
            _log.warning("granted without acknowledgement", owners=_names(owners), revoked_at_epoch=revocation.since)
        _log.info(
            "assignment published",
            epoch=published.epoch,
            cause=published.cause,
            members=len(members.planned),
            rings=len(published.rings),
            slots_in_transit=_slots_in_transit(published),
        )


def _slots_in_transit(assignment: Assignment) -> int:
    return sum(len(arc) for ring in assignment.rings for arc, cell in ring.arcs if cell.since)


def _outline(members: Members) -> Hashable:
    """What of the membership a plan depends on."""
    planned = frozenset((one.incarnation, one.name, one.capacity, one.handlers) for one in members.planned)
    return planned, frozenset(members.live)


def _cause(previous: Assignment | None, members: Members) -> str:
    if previous is None:
        return "there was no assignment"
    before, now = set(previous.members), set(members.live)
    changes = [(now - before, "joined"), (before - now, "left")]
    said = [f"{len(who)} {what} ({_names(who)})" for who, what in changes if who]
    return ", ".join(said) or "handover"


def _names(incarnations: Iterable[Incarnation]) -> str:
    ids = sorted(incarnation.id for incarnation in incarnations)
    more = "" if len(ids) <= NAMES_SHOWN else f" and {len(ids) - NAMES_SHOWN} more"
    return ", ".join(ids[:NAMES_SHOWN]) + more
