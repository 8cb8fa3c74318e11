"""What is read aside: one reading at a time, never waited for twice, not known when it is old."""

from __future__ import annotations

import asyncio

from ringcron.errors import StoreUnavailable
from ringcron_api.dashboard.aside import KEPT_SECONDS, Aside
from tests.support.keys import MovableClock


async def settle() -> None:
    """Let a reading that needs nothing end."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_it_is_read_again_after_a_while_and_kept_while_it_fails() -> None:
    clock = MovableClock()
    reads: list[float] = []

    async def read() -> int:
        reads.append(clock.elapsed())
        if 2 <= len(reads) <= 3:
            raise StoreUnavailable("away")
        return len(reads)

    aside = Aside(read, clock, every_seconds=5.0, what="test")
    assert reads == []
    assert await aside.latest() == 1  # waited for: nothing was known
    assert await aside.latest() == 1
    assert len(reads) == 1
    clock.skip(6)
    assert await aside.latest() == 1  # not waited for
    await settle()
    assert (len(reads), await aside.latest()) == (2, 1)  # it failed: what was read last
    clock.skip(KEPT_SECONDS)
    assert (await aside.latest(), len(reads)) == (None, 2)  # too old, and not waited for, as it failed
    await settle()
    assert len(reads) == 3
    clock.skip(6)
    assert await aside.latest() is None
    await settle()
    assert (len(reads), await aside.latest()) == (4, 4)
    await aside.close()


async def test_what_hangs_is_read_once_and_can_be_ended() -> None:
    clock = MovableClock()
    reads = 0

    async def read() -> int:
        nonlocal reads
        reads += 1
        await asyncio.Event().wait()
        return reads

    aside = Aside(read, clock, every_seconds=1.0, what="test")
    assert await aside.latest() is None  # after FIRST_WAIT_SECONDS
    clock.skip(20)
    assert await aside.latest() is None
    assert reads == 1
    await aside.close()
