"""When completions are written: claims go first for a moment, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ringcron.models import JobState, RunOutcome
from ringcron.store.answers import Completed
from ringcron_shard_worker import completer as module
from ringcron_shard_worker.completer import Completer


class Written:
    """Keeps what each statement wrote."""

    def __init__(self) -> None:
        self.batches: list[Sequence[Any]] = []
        self.some = asyncio.Event()

    async def complete_runs(self, batch: Sequence[Any]) -> Completed:
        self.batches.append(batch)
        self.some.set()
        return Completed(written=tuple(batch), moved=(), refused=())


@pytest.fixture
async def written() -> Written:
    return Written()


@pytest.fixture
async def completer(written: Written) -> AsyncIterator[Completer]:
    leases = SimpleNamespace(drop=lambda claim: None)
    made = Completer(cast(Any, written), cast(Any, leases), cast(Any, None), lambda: None)
    task = asyncio.create_task(made.run_forever())
    yield made
    task.cancel()


def ended() -> Any:
    completion = SimpleNamespace(state=JobState.DONE, skips=())
    return SimpleNamespace(claim=object(), outcome=RunOutcome.SUCCEEDED, completion=completion)


async def test_what_ends_while_the_first_claims_are_made_is_written_together_after_them(
    completer: Completer, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GATHER_SECONDS", 60.0)
    with completer.gathering():
        for _ in range(3):
            completer.put(ended())
            for _ in range(5):
                await asyncio.sleep(0)
        assert written.batches == []
    async with asyncio.timeout(10):
        await completer.flushed()
    assert [len(batch) for batch in written.batches] == [3]


async def test_in_a_backlog_completions_do_not_wait_for_the_claims_to_be_over(
    completer: Completer, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GATHER_SECONDS", 0.0)
    with completer.gathering():
        completer.put(ended())
        async with asyncio.timeout(10):
            await written.some.wait()
    assert [len(batch) for batch in written.batches] == [1]
