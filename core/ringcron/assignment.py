"""The assignment: which incarnation of which worker holds which arcs, and how it lies in ZooKeeper.

One znode holds the whole of it, so that it changes in one write. The leader is authoritative for it; workers only read.
An arc is in one of these conditions:

    owner       in transit   meaning
    w           no           w claims here
    none        no           nobody does (its jobs are helped, never lost)
    w           yes          w must stop claiming here and acknowledge; nobody may claim as owner until then
    none        yes          whoever held it by an assignment that was lost must acknowledge, so every member must

Invariant: an incarnation may claim the arcs that it owns and that are not in transit, and no others (`granted`). The
epoch only rises. The handlers of the rings are disjoint, and the arcs of each ring cover it from slot 0 to the last.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import orjson

from ringcron.errors import BadAssignment, ForeignAssignment
from ringcron.members import Incarnation
from ringcron.models import Arc, Slice

FORMAT: Final = 1
SIZE_LIMIT: Final = 1_000_000
"""Bytes that an encoded assignment may have: a znode holds 1 MiB, and the request around it needs some of that."""
_INFLATED_LIMIT: Final = 64 * 1024 * 1024


class Revocation(NamedTuple):
    """What the epoch `since` took away from `owner` (None: from whoever held it), to be acknowledged."""

    owner: Incarnation | None
    since: int


class Cell(NamedTuple):
    """What stands in one slot of a ring. In transit when `since` > 0: the epoch at which that began, `to` whom."""

    owner: Incarnation | None = None
    to: Incarnation | None = None
    since: int = 0

    @property
    def revocation(self) -> Revocation:
        """What has to be acknowledged before the slot is granted; only of a cell in transit."""
        return Revocation(self.owner, self.since)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ring:
    """The handlers that share a ring, and its arcs in order."""

    handlers: tuple[str, ...]
    arcs: tuple[tuple[Arc, Cell], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """One published version.

    `lineage` is new whenever there was no assignment to go on from: an acknowledgement of another lineage says nothing
    about this one. `members`: every incarnation that was alive. `leader` and `cause`: for people.
    """

    epoch: int
    lineage: str
    ring_size: int
    members: tuple[Incarnation, ...]
    rings: tuple[Ring, ...]
    leader: str
    cause: str

    def granted(self, incarnation: Incarnation) -> tuple[Slice, ...]:
        """What the incarnation may claim."""
        mine = Cell(owner=incarnation)
        slices = (
            Slice(handlers=ring.handlers, arcs=tuple(arc for arc, cell in ring.arcs if cell == mine))
            for ring in self.rings
        )
        return tuple(part for part in slices if part.arcs)

    def revocations(self) -> frozenset[Revocation]:
        """The revocations whose slots are still in transit."""
        return frozenset(cell.revocation for ring in self.rings for _, cell in ring.arcs if cell.since)

    def unowned(self) -> tuple[Arc, ...]:
        """Arcs of each ring that nobody owns; the whole ring when there is no member with a handler."""
        if not self.rings:
            return (Arc(lo=0, hi=self.ring_size - 1),)
        return tuple(arc for ring in self.rings for arc, cell in ring.arcs if cell.owner is None)


def encode(assignment: Assignment) -> bytes:
    """The znode's data: compressed JSON. Raises BadAssignment when it would be larger than a znode may be."""
    rings = assignment.rings
    named = chain.from_iterable((cell.owner, cell.to) for ring in rings for _, cell in ring.arcs)
    everybody = sorted({*assignment.members, *(incarnation for incarnation in named if incarnation is not None)})
    number: dict[Incarnation | None, int] = {incarnation: index for index, incarnation in enumerate(everybody)}
    number[None] = -1
    document = {
        "format": FORMAT,
        "epoch": assignment.epoch,
        "lineage": assignment.lineage,
        "slots": assignment.ring_size,
        "leader": assignment.leader,
        "cause": assignment.cause,
        "incarnations": [list(incarnation) for incarnation in everybody],
        "members": [number[member] for member in assignment.members],
        "rings": [
            {"handlers": ring.handlers, "arcs": [_encode_arc(arc, cell, number) for arc, cell in ring.arcs]}
            for ring in rings
        ],
    }
    data = zlib.compress(orjson.dumps(document))
    if len(data) > SIZE_LIMIT:
        raise BadAssignment(f"the assignment has {len(data)} bytes, a znode may have {SIZE_LIMIT}")
    return data


def _encode_arc(arc: Arc, cell: Cell, number: Mapping[Incarnation | None, int]) -> list[int]:
    """[first slot, owner] or, in transit, [first slot, owner, to, since]; it ends where the next one begins."""
    if cell.since:
        return [arc.lo, number[cell.owner], number[cell.to], cell.since]
    return [arc.lo, number[cell.owner]]


def decode(data: bytes, ring_size: int) -> Assignment:
    """Read a znode's data.

    Raises BadAssignment when it is broken, ForeignAssignment when it has another format or another ring size.
    """
    try:
        inflate = zlib.decompressobj()
        document = orjson.loads(inflate.decompress(data, _INFLATED_LIMIT))
        if document["format"] != FORMAT:
            raise ForeignAssignment(
                f"the assignment has format {document['format']!r:.40}, this program knows {FORMAT}"
            )
        if document["slots"] != ring_size:
            raise ForeignAssignment(
                f"the assignment is for {document['slots']!r:.40} slots, this program has {ring_size}"
            )
        return _read(document, ring_size)
    except (zlib.error, orjson.JSONDecodeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise BadAssignment(f"the assignment cannot be read: {error!r:.200}") from error


def _read(document: Mapping[str, Any], ring_size: int) -> Assignment:
    everybody = [Incarnation(str(id_), int(czxid)) for id_, czxid in document["incarnations"]]

    def who(number: int) -> Incarnation | None:
        return None if number == -1 else everybody[number]

    def cell(owner: int, to: int = -1, since: int = 0) -> Cell:
        return Cell(who(owner), who(to), int(since))

    rings = []
    for ring in document["rings"]:
        rows = ring["arcs"]
        starts = [int(row[0]) for row in rows]
        ends = [start - 1 for start in starts[1:]] + [ring_size - 1]
        if starts[0] != 0 or any(lo > hi for lo, hi in zip(starts, ends, strict=True)):
            raise ValueError("the arcs do not cover the ring")
        arcs = tuple((Arc(lo=lo, hi=hi), cell(*row[1:])) for lo, hi, row in zip(starts, ends, rows, strict=True))
        rings.append(Ring(handlers=tuple(map(str, ring["handlers"])), arcs=arcs))
    return Assignment(
        epoch=int(document["epoch"]),
        lineage=str(document["lineage"]),
        ring_size=ring_size,
        members=tuple(everybody[number] for number in document["members"]),
        rings=tuple(rings),
        leader=str(document["leader"]),
        cause=str(document["cause"]),
    )
