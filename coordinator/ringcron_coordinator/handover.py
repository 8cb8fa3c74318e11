"""How slots change hands: revoke, acknowledge, grant.

    free ──plan──▶ owned by A ──the plan says B──▶ in transit A→B ──A acked, died or was passed over──▶ owned by B
                       ▲                                │
                       └─────────the plan says A────────┘

Invariants: a slot is granted only when no live incarnation may still claim it: it had no owner, its owner's session is
over, its owner has acknowledged an epoch at which it was already in transit, or the owner was passed over: not before
its proof has run out, so that what it may still begin there waits the helper's delay (a claim in flight may meet the
new owner's, which costs contention, never a second run: the claim in PostgreSQL decides). The epoch is above every
epoch that any live member has seen, also when the assignment was lost. All here is a function of its arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Final

from ringcron import ring
from ringcron.assignment import Assignment, Cell, Revocation, Ring
from ringcron.members import Ack, Incarnation
from ringcron.models import Arc

Live = Mapping[Incarnation, Ack]
"""Every incarnation with a live session, and what it has acknowledged."""

_NOBODY: Final = Cell()


def awaited(assignment: Assignment, live: Live) -> dict[Revocation, frozenset[Incarnation]]:
    """For each revocation under way, the live members whose acknowledgement is still missing."""
    missing: dict[Revocation, frozenset[Incarnation]] = {}
    for revocation in assignment.revocations():
        holders = assignment.members if revocation.owner is None else (revocation.owner,)
        enough = Ack(revocation.since, assignment.lineage)
        missing[revocation] = frozenset(holder for holder in holders if not _covers(live.get(holder, enough), enough))
    return missing


def _covers(acked: Ack, wanted: Ack) -> bool:
    return acked.lineage == wanted.lineage and acked.epoch >= wanted.epoch


def next_assignment(
    previous: Assignment | None,
    plan: Sequence[Ring],
    live: Live,
    *,
    passed_over: Set[Revocation],
    ring_size: int,
    lineage: str,
    leader: str,
    cause: str,
) -> Assignment | None:
    """The next version to publish on the way to `plan`; None when there is nothing to say.

    `previous` None: there is no assignment, so nobody knows who holds what, and everybody must acknowledge first; what
    is made then is of the new `lineage`.
    `passed_over`: revocations whose slots are granted although an acknowledgement is missing.
    """
    epoch = 1 + max((0 if previous is None else previous.epoch, *(acked.epoch for acked in live.values())))
    missing = {} if previous is None else awaited(previous, live)
    clear = {revocation for revocation, holders in missing.items() if not holders or revocation in passed_over}
    before = {} if previous is None else {handler: old for old in previous.rings for handler in old.handlers}
    wanted = {handler: planned for planned in plan for handler in planned.handlers}
    unknown = Cell(since=epoch) if previous is None else _NOBODY

    together: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for handler in {**before, **wanted}:
        together[id(before.get(handler)), id(wanted.get(handler))].append(handler)
    rings: defaultdict[tuple[tuple[Arc, Cell], ...], list[str]] = defaultdict(list)
    for handlers in together.values():
        old = _cells(before.get(handlers[0]), ring_size, unknown)
        new = _cells(wanted.get(handlers[0]), ring_size, _NOBODY)
        cells = [_step(cell, target.owner, live, clear, epoch) for cell, target in zip(old, new, strict=True)]
        if handlers[0] in wanted or any(cell != _NOBODY for cell in cells):
            rings[ring.arcs(cells)].extend(handlers)

    made = tuple(
        sorted(
            (Ring(handlers=tuple(sorted(handlers)), arcs=arcs) for arcs, handlers in rings.items()),
            key=lambda made: made.handlers,
        )
    )
    members = tuple(sorted(live))
    if previous is not None and made == previous.rings and members == previous.members and epoch == previous.epoch + 1:
        return None
    return Assignment(
        epoch=epoch,
        lineage=lineage if previous is None else previous.lineage,
        ring_size=ring_size,
        members=members,
        rings=made,
        leader=leader,
        cause=cause,
    )


def _cells(old: Ring | None, ring_size: int, otherwise: Cell) -> list[Cell]:
    if old is None:
        return [otherwise] * ring_size
    return [cell for arc, cell in old.arcs for _ in range(len(arc))]


def _step(cell: Cell, target: Incarnation | None, live: Live, clear: Set[Revocation], epoch: int) -> Cell:
    """What comes after `cell` in a slot that the plan gives to `target`."""
    if cell.owner is None:  # in transit it may be anyone's: the wait goes on, whatever the plan says meanwhile
        free = not cell.since or cell.revocation in clear
    else:
        free = cell.owner not in live or cell.owner == target or cell.revocation in clear
    return Cell(owner=target) if free else Cell(owner=cell.owner, to=target, since=cell.since or epoch)
