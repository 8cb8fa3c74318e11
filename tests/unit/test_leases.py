"""Room for claims: whoever waits for it goes on exactly while there is some."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ringcron.clock import SystemClock
from ringcron.models import Cause, Claim
from ringcron_shard_worker.execution import RunControl
from ringcron_shard_worker.leases import UNWRITTEN_LIMIT, Leases

AT = datetime(2026, 1, 1, tzinfo=UTC)
CAPACITY = UNWRITTEN_LIMIT // 2


async def test_there_is_no_room_while_too_many_completions_are_unwritten() -> None:
    """A wait for room that ends without any spins, and keeps the event loop from writing them."""
    leases = _leases()
    first, second = _claims(CAPACITY), _claims(CAPACITY, generation=2)
    for claims in (first, second):
        for claim in claims:
            leases.add(claim, RunControl(0))
        assert leases.free == 0
        for claim in claims:
            leases.ended(claim)
    assert leases.free == 0
    assert not _let_through(leases)
    leases.drop(first[0])
    assert leases.free == CAPACITY
    assert _let_through(leases)


async def test_a_full_worker_has_room_when_one_run_has_ended() -> None:
    leases = _leases()
    claims = _claims(CAPACITY)
    for claim in claims:
        assert _let_through(leases)
        leases.add(claim, RunControl(0))
    assert not _let_through(leases)
    leases.ended(claims[0])
    assert leases.free == 1
    assert _let_through(leases)


def _leases() -> Leases:
    return Leases(CAPACITY, SystemClock(), lease_seconds=15)


def _claims(count: int, *, generation: int = 1) -> list[Claim]:
    return [
        Claim(
            id=UUID(int=number),
            next_run_at=AT,
            lease_generation=generation,
            handler="h",
            attempt=1,
            scheduled_for=AT,
            cause=Cause.SCHEDULE,
            claimed_at=AT,
            decided_until=AT,
            lost=0,
        )
        for number in range(count)
    ]


def _let_through(leases: Leases) -> bool:
    """Whether a wait for room ends at once."""
    waiting: Coroutine[Any, Any, None] = leases.room()
    try:
        waiting.send(None)
    except StopIteration:
        return True
    waiting.close()
    return False
