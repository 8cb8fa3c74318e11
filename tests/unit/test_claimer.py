"""What the claiming loop looks at next, after what it saw last."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import EARLIEST, Holding
from ringcron.store.answers import Peek
from ringcron.store.bounds import Bounds
from ringcron_shard_worker.claimer import Claimer
from ringcron_shard_worker.leases import Leases


class Enough(Exception):
    """All answers were given."""


class Answers:
    """A store that answers peeks, telling whether something is due beyond the near bounds, and notes their bounds."""

    hears_the_bell = False

    def __init__(self, clock: SystemClock, *beyond: bool) -> None:
        self._clock = clock
        self._beyond = list(beyond)
        self.peeked: list[Bounds] = []

    async def warm_up(self, bounds: Bounds) -> None:
        pass

    async def peek(self, own: Any, ring: Any, handlers: Any, bounds: Bounds, **_: Any) -> Peek:
        if not self._beyond:
            raise Enough
        self.peeked.append(bounds)
        return Peek(
            heads=(),
            ring=(),
            solo_wait_seconds=None,
            lapse_seconds=None,
            answered_at=self._clock.elapsed(),
            beyond=self._beyond.pop(0),
        )


async def test_while_old_jobs_are_due_every_peek_looks_for_more_of_them() -> None:
    """A near peek would not see them, and what is left of a backlog of last week would wait for the next far one."""
    clock = SystemClock()
    store = Answers(clock, True, True, False, False)
    database_clock = DatabaseClock(clock)
    database_clock.observe(datetime.now(UTC), clock.elapsed())
    holder = SimpleNamespace(holding=lambda: Holding(epoch=1, slices=(), proven=True), changed=asyncio.Event())
    reaper = SimpleNamespace(look=lambda: None, saw_none_lapsed=lambda: None, trusted=False)
    claimer = Claimer(
        cast(Any, store),
        cast(Any, holder),
        Leases(1, clock, lease_seconds=15),
        cast(Any, SimpleNamespace(troubled_until=0.0)),
        cast(Any, reaper),
        clock,
        database_clock,
        handlers=("h",),
        lease_seconds=15,
        poll_seconds=0.001,
        help_after_seconds=2,
        batch_size=1,
    )
    with pytest.raises(Enough):
        await claimer.run_forever()
    assert [bounds.from_at == EARLIEST for bounds in store.peeked] == [True, True, True, False]
