"""Writes completions in batches: as soon as the last batch is answered, whatever has gathered meanwhile.

Invariant: a completion that was handed over is written, refused by the fence, or still in here. While the database is
away it waits; the fence judges it when it is back. A batch that fails for another reason is split down to the row, so
that one row holds up no other: a value that cannot be stored is recorded as a failed run with a cleaned text, and
anything else is put aside and tried again, its lease renewed meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import structlog

from ringcron import metrics
from ringcron.errors import StatementFailed, StatementRefused, StoreUnavailable
from ringcron.models import JobState, RunOutcome
from ringcron.store.answers import Completed, EndedRun
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.leases import Leases

BATCH: Final = 500
GATHER_SECONDS: Final = 0.1
"""So long from their beginning claims go first."""
ASIDE_SECONDS: Final = (1.0, 30.0)
"""How long a completion that fails by itself is put aside: from, doubling, to."""

_log = structlog.get_logger(__name__)


class Completer:
    """The queue of ended runs and the loop that writes them."""

    def __init__(
        self,
        store: WorkerStore,
        leases: Leases,
        decide_again: Callable[[Sequence[EndedRun]], Awaitable[list[EndedRun]]],
        due_again: Callable[[], object],
    ) -> None:
        """`decide_again`: reads the definitions of runs whose job changed meanwhile and decides anew.
        `due_again`: called when jobs were made due again, perhaps sooner than the claimer's next look."""
        self._store = store
        self._leases = leases
        self._decide_again = decide_again
        self._due_again = due_again
        self._waiting: deque[EndedRun] = deque()
        self._aside: dict[EndedRun, asyncio.TimerHandle] = {}
        self._some = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._claims_done = asyncio.Event()
        self._claims_done.set()
        self._claims_first_until = 0.0

    def put(self, ended: EndedRun) -> None:
        """Take over a completion."""
        self._waiting.append(ended)
        self._idle.clear()
        self._some.set()

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """While claims are being made: completions come together for a moment from their beginning, so that claims go
        first and statements are few. Claims that go on for longer are a backlog: then each half of the worker's places
        is completed while the other is claimed."""
        self._claims_first_until = asyncio.get_running_loop().time() + GATHER_SECONDS
        self._claims_done.clear()
        try:
            yield
        finally:
            self._claims_done.set()

    async def flushed(self) -> None:
        """Wait until nothing waits to be written."""
        await self._idle.wait()

    async def run_forever(self) -> None:
        while True:
            await self._some.wait()
            await self._gather()
            self._some.clear()
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            await self._write(batch)
            if self._waiting:
                self._some.set()
            elif not self._aside:
                self._idle.set()

    async def _gather(self) -> None:
        if self._claims_done.is_set() or len(self._waiting) >= BATCH:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._claims_first_until):
                await self._claims_done.wait()

    async def _write(self, batch: Sequence[EndedRun]) -> None:
        pause = 0.05
        while True:
            try:
                completed = await self._store.complete_runs(batch)
                break
            except StatementFailed as error:
                await self._split(batch, error)
                return
            except StoreUnavailable as error:
                _log.warning("completions wait for the database", count=len(batch), error=str(error))
                await asyncio.sleep(random.uniform(0.5, 1) * pause)
                pause = min(1.0, pause * 2)
            except StatementRefused as error:
                await self._split(batch, error)
                return
        self._settle_accounts(completed)
        if completed.moved:
            for ended in await self._decide_again(completed.moved):
                self.put(ended)

    async def _split(self, batch: Sequence[EndedRun], error: StatementRefused | StatementFailed) -> None:
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])
            return
        ended = batch[0]
        if isinstance(error, StatementFailed):
            self._put_aside(ended, error)
            return
        if ended.bare:
            # Not even that: its lease lapses, and the reaper's record and quarantine take over.
            _log.error("completion given up", job=str(ended.claim.id), error=str(error))
            self._leases.drop(ended.claim)
            return
        _log.error("completion cannot be written as it is", job=str(ended.claim.id), error=str(error))
        await self._write([_bare(ended, str(error))])

    def _put_aside(self, ended: EndedRun, error: StatementFailed) -> None:
        first, longest = ASIDE_SECONDS
        seconds = min(longest, first * 2.0**ended.failures)
        _log.error("completion put aside", job=str(ended.claim.id), error=str(error), seconds=seconds)
        again = dataclasses.replace(ended, failures=ended.failures + 1)

        def bring_back() -> None:
            del self._aside[again]
            self.put(again)

        self._aside[again] = asyncio.get_running_loop().call_later(seconds, bring_back)

    def _settle_accounts(self, completed: Completed) -> None:
        for outcome, count in Counter(ended.outcome for ended in completed.written).items():
            metrics.RUNS[outcome].inc(count)
        for ended in completed.written:
            self._leases.drop(ended.claim)
            if ended.completion.state is JobState.DEAD:
                metrics.DEAD.inc()
                _log.error("job is dead", job=str(ended.claim.id), reason=ended.completion.dead_reason)
            for skip in ended.completion.skips:
                metrics.OCCURRENCES_MISSED[skip.reason].inc(skip.count)
        if any(ended.completion.state is JobState.DUE for ended in completed.written):
            self._due_again()
        for ended, _ in completed.refused:
            self._leases.drop(ended.claim)


def _bare(ended: EndedRun, fault: str) -> EndedRun:
    """The same completion without what PostgreSQL might refuse: no result, plain texts, no kept ticks or skip."""
    text = f"the record of this run could not be stored: {fault}".encode("ascii", "replace").decode()[:500]
    completion = ended.completion
    return dataclasses.replace(
        ended,
        bare=True,
        outcome=RunOutcome.FAILED,
        error=text,
        result=None,
        completion=dataclasses.replace(
            completion,
            state=JobState.DEAD if completion.skips or completion.kept else completion.state,
            kept=(),
            skip=None,
            given_up=(),
            dead_reason=text if completion.skips or completion.kept or completion.dead_reason else None,
        ),
    )
