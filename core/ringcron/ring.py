"""The ring: which worker each slot falls to.

Consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam 2016). Each worker has TOKENS points on the
ring, hashed from its stable name. The slots are dealt out in order: each goes clockwise to the first worker that has
room, room being ⌈BALANCE % × the worker's share of the slots by capacity⌉.

Invariants: the answer is a function of the names and capacities alone: not of their order, nor of the process, the
machine or its hash seed; every slot has exactly one owner unless nobody has capacity; no owner has more than its room.
Only whole numbers are used, so no machine rounds differently. coordinator/README.md holds the measurements behind
TOKENS and BALANCE.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Final, TypeVar

from ringcron.models import Arc
from ringcron.slots import SLOT_COUNT

TOKENS: Final = 3
"""Points on the ring per worker: more of them move fewer slots when a worker comes or goes, and make more arcs."""
BALANCE: Final = 115
"""Room of a worker in percent of its fair share: less makes loads evener and moves more slots."""

WHOLE_RING: Final = Arc(lo=0, hi=SLOT_COUNT - 1)
"""Every slot, as one arc."""

T = TypeVar("T")


def token(name: str, index: int, ring_size: int) -> int:
    """The position of one of a worker's tokens: BLAKE2b with 8 bytes of digest over "name#index", mod `ring_size`."""
    digest = blake2b(f"{name}#{index}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % ring_size


def room(capacity: int, total: int, ring_size: int, balance: int = BALANCE) -> int:
    """How many slots a worker may own at most, of a ring whose workers have `total` capacity together."""
    return -(-balance * ring_size * capacity // (100 * total))


def owners(
    capacities: Mapping[str, int], ring_size: int, *, tokens: int = TOKENS, balance: int = BALANCE
) -> tuple[str | None, ...]:
    """The owner's name for each slot of the ring; None everywhere when nobody has capacity.

    Capacities are whole numbers ≥ 0; who has 0 owns nothing.
    """
    capable = {name: capacity for name, capacity in capacities.items() if capacity > 0}
    if not capable:
        return (None,) * ring_size
    total = sum(capable.values())
    left = {name: room(capacity, total, ring_size, balance) for name, capacity in capable.items()}
    points = sorted((token(name, index, ring_size), name) for name in capable for index in range(tokens))
    positions = [position for position, _ in points]
    dealt: list[str | None] = []
    for slot in range(ring_size):
        point = bisect_left(positions, slot) % len(points)
        while left[points[point][1]] == 0:  # ends: the rooms add up to at least `ring_size`
            point = (point + 1) % len(points)
        name = points[point][1]
        left[name] -= 1
        dealt.append(name)
    return tuple(dealt)


def arcs(cells: Sequence[T]) -> tuple[tuple[Arc, T], ...]:
    """What stands in each slot, as contiguous arcs from slot 0 on; an arc never wraps past the last slot."""
    found: list[tuple[Arc, T]] = []
    lo = 0
    for cell, group in groupby(cells):
        hi = lo + sum(1 for _ in group) - 1
        found.append((Arc(lo=lo, hi=hi), cell))
        lo = hi + 1
    return tuple(found)
