"""Until when the worker may live, as the guard is told it."""

from __future__ import annotations

import asyncio
from math import inf

from ringcron.clock import SystemClock
from ringcron_shard_worker.execution.worker_deadline import WorkerDeadline
from tests.support.waiting import until


def made() -> tuple[WorkerDeadline, list[float], float]:
    clock = SystemClock()
    told: list[float] = []
    return WorkerDeadline(clock, told.append), told, clock.elapsed()


async def test_an_earlier_limit_is_told_before_the_handler_can_block_the_loop() -> None:
    deadline, told, now = made()

    deadline.put("a", now + 100)
    assert told == [now + 100]
    deadline.put("b", now + 50)
    assert told == [now + 100, now + 50]


async def test_a_far_deadline_is_taken_back_a_little_later_in_one_message() -> None:
    deadline, told, now = made()
    for run in range(100):
        deadline.put(run, now + 100)
        deadline.drop(run)
    assert told == [now + 100]

    await until(lambda: told[-1] == inf, seconds=3)
    assert told == [now + 100, inf]


async def test_a_near_deadline_is_moved_at_once() -> None:
    deadline, told, now = made()
    deadline.put("a", now + 1)
    deadline.put("a", now + 100)
    await asyncio.sleep(0)
    assert told == [now + 1, now + 100]


async def test_the_earliest_of_all_counts() -> None:
    deadline, told, now = made()
    deadline.put("a", now + 1)
    deadline.put("b", now + 60)
    deadline.drop("a")
    await asyncio.sleep(0)

    assert told == [now + 1, now + 60]


async def test_closing_takes_the_deadline_back() -> None:
    deadline, told, now = made()
    deadline.put("a", now + 1)
    deadline.close()

    assert told == [now + 1, inf]
