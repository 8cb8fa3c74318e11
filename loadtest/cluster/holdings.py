"""What workers say that they hold of the ring, and whether they share it.

Invariant: an incarnation that is gone is told for a while beside the one in its place; of one name the newest counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from ringcron.slots import SLOT_COUNT

REPORTED_SECONDS: Final = 15.0
"""Who has not reported for longer is not told."""


class Holding(NamedTuple):
    """A row of list_holdings. `epoch`: None before a worker has followed an assignment."""

    name: str
    worker_id: str
    epoch: int | None
    slots: int


def share_ring(holdings: Sequence[Holding], names: Collection[str]) -> bool:
    """Whether the workers of these names, each in its newest incarnation, hold the whole ring at one epoch."""
    newest = {one.name: one for one in sorted(holdings, key=lambda one: one.epoch or 0) if one.name in names}
    if newest.keys() != set(names):
        return False
    return len({one.epoch for one in newest.values()}) == 1 and sum(one.slots for one in newest.values()) == SLOT_COUNT
