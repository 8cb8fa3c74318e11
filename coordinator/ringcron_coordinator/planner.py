"""Who ought to own which slots: a function of the members alone.

Invariants: every coordinator computes the same plan from the same members; it is total (what could not be understood
was passed over by `read_members`). Handlers that the same members have share one ring, usually one in all. Only
members that can run a ring's handlers and have capacity are on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ringcron import ring
from ringcron.assignment import Cell, Ring
from ringcron.members import Member


def plan(members: Iterable[Member], ring_size: int) -> tuple[Ring, ...]:
    """The rings with the owner of each arc, nothing in transit, in the order of their handlers.

    `members` have distinct names, as `read_members` makes sure. A handler that no member with capacity has is on no
    ring.
    """
    having: defaultdict[str, list[Member]] = defaultdict(list)
    for member in members:
        if member.capacity > 0:
            for handler in member.handlers:
                having[handler].append(member)
    sharing: defaultdict[tuple[Member, ...], list[str]] = defaultdict(list)
    for handler, capable in having.items():
        sharing[tuple(sorted(capable, key=lambda member: member.incarnation))].append(handler)
    rings = [_ring(tuple(sorted(handlers)), capable, ring_size) for capable, handlers in sharing.items()]
    return tuple(sorted(rings, key=lambda planned: planned.handlers))


def _ring(handlers: tuple[str, ...], members: tuple[Member, ...], ring_size: int) -> Ring:
    cells = {member.name: Cell(owner=member.incarnation) for member in members}
    dealt = ring.owners({member.name: member.capacity for member in members}, ring_size)
    arcs = ring.arcs([Cell() if name is None else cells[name] for name in dealt])
    return Ring(handlers=handlers, arcs=arcs)
