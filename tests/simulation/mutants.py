"""Faults put into the product on purpose: each takes one guard away, and the simulation must notice.

Invariant: a mutant is applied in memory and taken back; it changes one decision and nothing else. The fence and the
guard against a step of the clock stand in SQL, so their mutants change the statement's stand-in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from unittest.mock import patch
from uuid import UUID

from ringcron_coordinator import handover
from ringcron_shard_worker.claimer import Claimer
from ringcron_shard_worker.execution import RunControl
from ringcron_shard_worker.reaper import Watch
from ringcron_shard_worker.slice_holder import SliceHolder
from tests.simulation.database import Database, Row
from tests.simulation.plan import Mode


@dataclass(frozen=True, slots=True)
class Mutant:
    """`promises`: what it breaks, one of them at least. `found_at`: a seed from which on it is soon found."""

    mode: Mode
    promises: tuple[str, ...]
    patches: Callable[[], list[Any]]
    found_at: int = 0


def _without_generation(self: Database, id: UUID, generation: int, owner: str, next_run_at: datetime) -> Row | None:
    row = self.jobs.get(id)
    return row if row is not None and row.state == "claimed" and row.lease_owner == owner else None


def _without_owner(self: Database, id: UUID, generation: int, owner: str, next_run_at: datetime) -> Row | None:
    row = self.jobs.get(id)
    return row if row is not None and row.state == "claimed" else None


def _trusts_one_reading(self: Watch) -> bool:
    return True


def _believes_what_it_was_told(self: SliceHolder) -> bool:
    return self._named is not None and self._followed_at is not None


async def _takes_its_own_claims_for_lost(self: Claimer) -> None:
    await self._store.release_unknown_claims([])
    self._answer_missing = False


def _extends_from_the_answer(self: RunControl, trust_until: float) -> None:
    self.trust_until = trust_until + 3.0


MUTANTS: Final[Mapping[str, Mutant]] = {
    "the fence without the generation": Mutant(
        "safety", ("I3",), lambda: [patch.object(Database, "fenced", _without_generation)]
    ),
    "the fence without generation and owner": Mutant(
        "safety", ("I3",), lambda: [patch.object(Database, "fenced", _without_owner)]
    ),
    "a handover that grants before the acknowledgement": Mutant(
        "safety", ("I12",), lambda: [patch.object(handover, "_covers", lambda acked, wanted: True)]
    ),
    "a slice holder that trusts after a suspension": Mutant(
        "safety", ("I12",), lambda: [patch.object(SliceHolder, "_proven", _believes_what_it_was_told)]
    ),
    "a reaper that trusts one reading": Mutant(
        "safety", ("I2", "I4"), lambda: [patch.object(Watch, "trusted", property(_trusts_one_reading))], found_at=250
    ),
    "claims handed back that run": Mutant(
        "safety", ("I2", "I4"), lambda: [patch.object(Claimer, "_release_unknown", _takes_its_own_claims_for_lost)]
    ),
    "trust that outlasts the lease": Mutant(
        "safety", ("I2", "I4"), lambda: [patch.object(RunControl, "extend", _extends_from_the_answer)]
    ),
}


@contextlib.contextmanager
def applied(name: str) -> Iterator[Mutant]:
    """The product with a mutant in it."""
    mutant = MUTANTS[name]
    with contextlib.ExitStack() as stack:
        for one in mutant.patches():
            stack.enter_context(one)
        yield mutant
