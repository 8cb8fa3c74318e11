"""One reading of the pool for everybody who asks within a second."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from ringcron.models import WorkerReport
from ringcron.store.lag import Lag
from ringcron.store.snapshot import Pace, Snapshot
from ringcron_api.pool_reader import PoolReader
from tests.support.values import report_of

NOW = datetime(2027, 1, 1, tzinfo=UTC)


class _Store:
    """Counts how often it is asked; answers when it is let."""

    def __init__(self, *workers: WorkerReport) -> None:
        self.workers = list(workers)
        self.asked = 0
        self.handlers: list[str] = []
        self.released = asyncio.Event()
        self.fails = False

    async def list_workers(self) -> list[WorkerReport]:
        self.asked += 1
        await self.released.wait()
        if self.fails:
            raise ConnectionError
        return self.workers

    async def snapshot(self, handlers: Sequence[str]) -> Snapshot:
        self.handlers = list(handlers)
        return Snapshot(taken_at=NOW, age_seconds=0.0, lag=Lag(taken_at=NOW, slots=()), pace=Pace(until=NOW))


class _Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def elapsed(self) -> float:
        return self.seconds


async def test_callers_share_one_reading_for_a_second() -> None:
    store, clock = _Store(), _Clock()
    reader = PoolReader(store, clock)  # type: ignore[arg-type]
    callers = [asyncio.create_task(reader.reading()) for _ in range(20)]
    gone = asyncio.create_task(reader.reading())
    await asyncio.sleep(0)
    gone.cancel()
    store.released.set()
    await asyncio.gather(*callers)
    assert store.asked == 1
    clock.seconds += 0.9
    await reader.reading()
    assert store.asked == 1
    clock.seconds += 0.2
    await reader.reading()
    assert store.asked == 2


async def test_a_reading_that_failed_is_tried_again() -> None:
    store, clock = _Store(), _Clock()
    store.released.set()
    store.fails = True
    reader = PoolReader(store, clock)  # type: ignore[arg-type]
    with pytest.raises(ConnectionError):
        await reader.reading()
    store.fails = False
    assert (await reader.reading()).workers == ()


async def test_the_handlers_of_a_silent_worker_have_nobody() -> None:
    store = _Store(report_of("a.1", handlers=("log",)), report_of("b.1", handlers=("http",), age_seconds=60.0))
    store.released.set()
    await PoolReader(store, _Clock()).reading()  # type: ignore[arg-type]
    assert store.handlers == ["log"]
