"""The claiming loop: peek, claim what is due, sleep until the next due instant.

Invariant: no more is claimed than can start now; an arc is claimed only inside `holder.claiming()`, so that a handover
waits for the claim in flight; and after a claim whose answer never came, what PostgreSQL says this worker holds and
this worker does not know of is handed back before anything else is claimed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections import deque
from typing import Final

import structlog

from ringcron import metrics
from ringcron.clock import Clock, DatabaseClock
from ringcron.errors import StatementRefused, StoreUnavailable
from ringcron.models import Claim, Holding
from ringcron.store.answers import Peek
from ringcron.store.bounds import UNBOUNDED, Bounds, behind, near
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.lease_keeper import trust_of
from ringcron_shard_worker.leases import Leases
from ringcron_shard_worker.reaper import Reaper
from ringcron_shard_worker.runner import Runner
from ringcron_shard_worker.slice_holder import SliceHolder
from ringcron_shard_worker.turns import (
    FAIR_EVERY,
    LASTS,
    LASTS_HEARING,
    Turn,
    TurnKind,
    due_turns,
    fair_turn,
    next_wake,
    own_arcs,
    owns_everything,
)

FIRST_PAUSE_SECONDS: Final = 0.05
MOST_DOUBLINGS: Final = 10
IN_TURNS_FROM: Final = 100
"""A worker with room for more than this takes half of its capacity at a time: while it begins and runs one half,
PostgreSQL claims or completes the other, instead of each waiting for the other to be done."""
LEAST_SLEEP_SECONDS: Final = 0.0005
"""An instant may seem to lie ahead by rounding alone: a loop that sleeps for as little as that may not move at all."""

_log = structlog.get_logger(__name__)


class Claimer:
    """The claiming loop of one worker."""

    def __init__(
        self,
        store: WorkerStore,
        holder: SliceHolder,
        leases: Leases,
        runner: Runner,
        reaper: Reaper,
        clock: Clock,
        database_clock: DatabaseClock,
        *,
        handlers: tuple[str, ...],
        lease_seconds: float,
        poll_seconds: float,
        help_after_seconds: float,
        batch_size: int,
    ) -> None:
        self._store = store
        self._holder = holder
        self._leases = leases
        self._runner = runner
        self._reaper = reaper
        self._clock = clock
        self._database_clock = database_clock
        self._handlers = handlers
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds
        self._help_after_seconds = help_after_seconds
        self._batch_size = min(batch_size, max(IN_TURNS_FROM, leases.capacity // 2))
        self._bounds = UNBOUNDED  # of the claims after the last peek
        self._peeked = UNBOUNDED  # those of the last peek
        self._near: Bounds | None = None
        self._all_due = 0.0
        self._claims_made = 0
        self._answer_missing = False
        self._away = False
        self._fruitless = 0
        self._help_again_at = 0.0
        self.claiming = asyncio.Lock()
        """Held while a claim is in flight or its runs are being started."""

    async def run_forever(self) -> None:
        while True:
            try:
                await self._round()
                if self._away:
                    self._away = False
                    _log.info("the database is back")
            except (StoreUnavailable, StatementRefused) as error:
                if not self._away:
                    self._away = True
                    _log.warning("nothing can be claimed: the database does not answer", error=str(error))
                await asyncio.sleep(random.uniform(0.1, 0.5))

    async def _round(self) -> None:
        """Peek once, make every claim that is worth making, then sleep until something is due."""
        if self._answer_missing:
            await self._release_unknown()
        if self._leases.free <= 0:
            await self._leases.room()
        if (trouble := self._runner.troubled_until - self._clock.elapsed()) > 0:
            await asyncio.sleep(trouble)
        holding = self._holder.holding()
        help_after = self._help_after_seconds * random.uniform(0.75, 1.25)
        lasts = self._poll_seconds * random.uniform(*(LASTS_HEARING if self._store.hears_the_bell else LASTS))
        peek = await self._peek(holding, lasts)
        if peek.answered_at < self._help_again_at:
            # Others were quicker where it helped: its own only, until then.
            lasts = min(lasts, self._help_again_at - peek.answered_at)
            peek = dataclasses.replace(peek, ring=())
        while (age := self._clock.elapsed() - peek.answered_at) <= lasts:
            turns = due_turns(
                peek,
                age_seconds=age,
                proven=holding.proven,
                help_after_seconds=help_after,
                solo_free=not self._leases.solo_running,
                handlers=self._handlers,
            )
            if turns:
                if await self._take(deque(turns), peek) > 0:
                    self._fruitless = 0
                elif all(turn.kind is TurnKind.HELP for turn in turns):
                    self._help_again_at = self._clock.elapsed() + self._pause()
                else:
                    await self._sleep(self._pause())
                return
            if await self._reap_lapsed(peek) or await self._sleep(self._until_next(peek, holding, help_after, lasts)):
                return

    def _pause(self) -> float:
        """Seconds until it looks again for what the peek saw and others took: growing up to the poll, or it spins."""
        pause: float = min(self._poll_seconds, FIRST_PAUSE_SECONDS * 2**self._fruitless)
        self._fruitless = min(self._fruitless + 1, MOST_DOUBLINGS)
        return pause * random.uniform(*LASTS)

    async def _peek(self, holding: Holding, lasts: float) -> Peek:
        now, database_now = self._clock.elapsed(), self._database_clock.now()
        bounds = near(database_now)
        if bounds != self._near:
            await self._store.warm_up(bounds)
            self._near = bounds
        self._peeked = bounds
        if now >= self._all_due:
            self._peeked = behind(database_now)
            self._all_due = now + random.uniform(2, 5)
        ring = () if owns_everything(holding, self._handlers) else self._handlers
        own = own_arcs(holding, self._handlers)
        peek = await self._store.peek(own, ring, self._handlers, self._peeked, arcs=bounds, horizon_seconds=lasts)
        self._bounds = self._peeked if peek.beyond else bounds
        if peek.beyond:
            self._all_due = now  # more of it may lie there, and a near peek would not see it
        self._reaper.look()
        if self._peeked is not bounds and (peek.lapse_seconds is None or peek.lapse_seconds > 0):
            self._reaper.saw_none_lapsed()
        return peek

    async def _take(self, turns: deque[Turn], peek: Peek) -> int:
        """Make the claims of `turns`, one after the other, waiting for room between them; returns how many jobs came.

        An arc that gave all that was asked for is asked again, until the peek is older than the poll.
        """
        with self._runner.completer.gathering():
            return await self._take_all(turns, peek)

    async def _take_all(self, turns: deque[Turn], peek: Peek) -> int:
        total = 0
        while turns and self._clock.elapsed() - peek.answered_at <= self._poll_seconds:
            if self._leases.free <= 0:
                try:
                    async with asyncio.timeout(self._poll_seconds):
                        await self._leases.room()
                except TimeoutError:
                    return total
            self._claims_made += 1
            if self._claims_made % FAIR_EVERY == 0:
                total += len(await self._claim(fair_turn(self._handlers, self._lease_seconds)))
                continue
            turn = turns.popleft()
            if turn.kind is TurnKind.SOLO and self._leases.solo_running:
                continue
            asked = min(self._leases.free, self._batch_size)
            came = len(await self._claim(turn))
            total += came
            if came == asked and turn.kind is not TurnKind.SOLO:
                turns.appendleft(turn)
        return total

    async def _claim(self, turn: Turn) -> list[Claim]:
        batch = 1 if turn.kind is TurnKind.SOLO else min(self._leases.free, self._batch_size)
        if batch <= 0:
            return []
        async with self.claiming:
            claims, sent_at = await self._claim_in_slice(turn, batch)
            self._reaper.look()
            if not claims:
                metrics.CLAIMS_EMPTY[turn.kind].inc()
                return []
            metrics.CLAIM_JOBS[turn.kind].observe(len(claims))
            await asyncio.sleep(0)  # a completion that waits for the connection is on its way while these are begun
            try:
                await self._runner.start(claims, trust_of(sent_at, self._lease_seconds))
            except (StoreUnavailable, StatementRefused):
                self._answer_missing = True
                raise
        return claims

    async def _claim_in_slice(self, turn: Turn, batch: int) -> tuple[list[Claim], float]:
        """The claims, and when (elapsed) the statement was sent; none where the arc is being handed over."""
        async with self._holder.claiming() as holding:
            sent_at = self._clock.elapsed()
            if turn.kind is TurnKind.OWN and not _still_ours(holding, turn):
                return [], sent_at
            try:
                claims = await self._store.claim(
                    turn.arc,
                    turn.handlers,
                    batch=batch,
                    bounds=self._bounds,
                    overdue_seconds=turn.overdue_seconds,
                    solo=turn.kind is TurnKind.SOLO,
                )
            except StoreUnavailable:
                self._answer_missing = True
                raise
            metrics.CLAIM_DURATION[turn.kind].observe(self._clock.elapsed() - sent_at)
        return claims, sent_at

    async def _release_unknown(self) -> None:
        released = await self._store.release_unknown_claims(self._leases.claims())
        self._answer_missing = False
        if released:
            _log.info("claims whose answer never came were handed back", count=len(released))

    async def _reap_lapsed(self, peek: Peek) -> bool:
        if peek.lapse_seconds is None or peek.lapse_seconds > self._clock.elapsed() - peek.answered_at:
            return False
        return self._reaper.trusted and await self._reaper.reap(self._peeked) > 0

    def _until_next(self, peek: Peek, holding: Holding, help_after: float, lasts: float) -> float:
        age = self._clock.elapsed() - peek.answered_at
        wake = next_wake(
            peek,
            age_seconds=age,
            proven=holding.proven,
            help_after_seconds=help_after,
            solo_free=not self._leases.solo_running,
            poll_seconds=lasts - age,
        )
        if peek.lapse_seconds is not None and self._reaper.trusted and peek.lapse_seconds > age:
            # A little apart from the others who saw the same lease.
            wake = min(wake, peek.lapse_seconds - age + random.uniform(0, 0.1))
        return max(wake, LEAST_SLEEP_SECONDS)

    async def _sleep(self, seconds: float) -> bool:
        """Sleep, but no longer than until the slice changes or jobs were made due here; tells whether that came."""
        try:
            async with asyncio.timeout(seconds):
                await self._holder.changed.wait()
        except TimeoutError:
            return False
        self._holder.changed.clear()
        return True


def _still_ours(holding: Holding, turn: Turn) -> bool:
    """Whether a revocation since the peek has not taken the arc, and ownership is as certain as the turn assumed."""
    return (turn.overdue_seconds > 0 or holding.proven) and any(turn.arc in held.arcs for held in holding.slices)
