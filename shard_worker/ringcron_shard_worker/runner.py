"""From claims to completions: decode, settle, run, decide.

Invariant: no handler starts before its row was decoded by itself and its missed ticks were settled under the fence; and
whatever happens to a run, exactly one completion is handed to the completer (the fence decides whether it counts).
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

import structlog

from ringcron import metrics
from ringcron.clock import Clock, DatabaseClock
from ringcron.errors import ScheduleError, StatementFailed, StatementRefused, StoreUnavailable
from ringcron.models import Claim, RunOutcome
from ringcron.policies import Settlement, next_cancelling_tick, settle
from ringcron.store.answers import EndedRun
from ringcron.store.claimed import Claimed, Undecodable
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.completer import Completer
from ringcron_shard_worker.durations import Durations
from ringcron_shard_worker.endings import buried, decided_again, ended_run
from ringcron_shard_worker.execution import Execution, RunControl, RunRequest, RunResult, StopReason
from ringcron_shard_worker.execution.in_loop import Over
from ringcron_shard_worker.leases import Held, Leases
from ringcron_shard_worker.traces import Traces

TROUBLE_SECONDS: Final = 1.0

_log = structlog.get_logger(__name__)


class Runner:
    """Runs claimed jobs and hands their completions to its completer. `due_again`: see Completer."""

    def __init__(
        self,
        store: WorkerStore,
        leases: Leases,
        execution: Execution,
        clock: Clock,
        database_clock: DatabaseClock,
        due_again: Callable[[], object],
        traces: Traces | None = None,
    ) -> None:
        self._store = store
        self._leases = leases
        self._execution = execution
        self._traces = traces
        self._clock = clock
        self._database_clock = database_clock
        self._awaited: set[asyncio.Task[None]] = set()
        self._running = 0
        self._none_runs = asyncio.Event()
        self._none_runs.set()
        self.troubled_until = 0.0
        """Until when (elapsed) nothing should be claimed here: a run could not even be begun."""
        self.durations = Durations()
        self._due_again = due_again
        self.completer = Completer(store, leases, self.decide_again, due_again)

    async def start(self, claims: Sequence[Claim], trust_until: float) -> None:
        """Take over fresh claims. Raises StoreUnavailable where they could not be read or settled; those that were not
        started are then no longer among the leases, for the claimer to hand back."""
        waiting = {claim.run_id: self._leases.add(claim, RunControl(trust_until)) for claim in claims}
        try:
            await self._settle_and_begin(await self._store.definitions(claims), waiting)
        finally:
            for held in waiting.values():
                self._leases.drop(held.claim)

    async def _settle_and_begin(self, rows: Sequence[Claimed | Undecodable], waiting: dict[str, Held]) -> None:
        """Begin each row, and take it out of `waiting` (by run id) then."""
        to_settle: list[tuple[Claimed, Settlement]] = []
        for row in rows:
            fault, settlement = (row.reason, None) if isinstance(row, Undecodable) else _settlement_of(row)
            if settlement is not None and isinstance(row, Claimed):
                to_settle.append((row, settlement))
                continue
            held = waiting.pop(row.claim.run_id)
            if fault is None and isinstance(row, Claimed):
                self._begin(row, held.control)
            else:
                self._bury(row.claim, row.revision, fault or "")
        if not to_settle:
            return
        passed = await self._settle([(row.claim, settlement) for row, settlement in to_settle])
        for row, settlement in to_settle:
            if row.claim.id not in passed:
                continue
            if settlement.skip is not None:
                metrics.OCCURRENCES_MISSED[settlement.skip.reason].inc(settlement.skip.count)
            if not settlement.release:
                self._begin(_settled(row, settlement), waiting.pop(row.claim.run_id).control)

    async def _settle(self, settlements: Sequence[tuple[Claim, Settlement]]) -> set[UUID]:
        """The ids whose settlement was written. One that fails by itself leaves only its own lease to lapse."""
        try:
            return await self._store.settle_claims(settlements)
        except (StatementFailed, StatementRefused) as error:
            if len(settlements) == 1:
                _log.error("missed ticks cannot be settled", job=str(settlements[0][0].id), error=str(error))
                return set()
            middle = len(settlements) // 2
            return await self._settle(settlements[:middle]) | await self._settle(settlements[middle:])

    def _begin(self, row: Claimed, control: RunControl) -> None:
        """Run it, or end it unrun where a cancel was requested before anybody could stop it."""
        if row.cancel_requested:
            now = self._clock.elapsed()
            self._end(row, RunResult(outcome=RunOutcome.CANCELLED), now, now)
            return
        claim, definition = row.going.claim, row.going.definition
        delay = (self._database_clock.now() - claim.next_run_at).total_seconds()
        metrics.RUN_START_DELAY[_start_cause(claim)].observe(max(0.0, delay))
        trace = (
            None if self._traces is None else self._traces.begin(claim, definition.traceparent, definition.tracestate)
        )
        request = RunRequest(
            job_id=claim.id,
            run_id=claim.run_id,
            handler=claim.handler,
            payload=definition.payload,
            scheduled_for=claim.scheduled_for,
            attempt=claim.attempt,
            lease_generation=claim.lease_generation,
            timeout_seconds=definition.timeout_seconds,
            solo=claim.solo,
            trace=trace,
        )
        self._running += 1
        self._none_runs.clear()
        stop_at_tick: asyncio.TimerHandle | None = None

        def over(result: RunResult, began_at: float, ended_at: float) -> None:
            if stop_at_tick is not None:
                stop_at_tick.cancel()
            if trace is not None:
                trace.end(result.outcome, result.error)
            self._over(row, result, began_at, ended_at)

        try:
            stop_at_tick = self._stop_at_tick(row, control)
            if self._execution.begin(request, control, over):
                return
        except Exception as fault:
            now = self._clock.elapsed()
            over(_our_fault(request, fault), now, now)
            return
        task = asyncio.create_task(self._await(request, control, over), name=request.run_id)
        self._awaited.add(task)
        task.add_done_callback(self._awaited.discard)

    async def _await(self, request: RunRequest, control: RunControl, over: Over) -> None:
        began_at = self._clock.elapsed()
        try:
            result = await self._execution.run(request, control)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            result = _our_fault(request, error)
        over(result, began_at, self._clock.elapsed())

    def _over(self, row: Claimed, result: RunResult, began_at: float, ended_at: float) -> None:
        """The handler has ended, or could not be begun."""
        self._running -= 1
        if not self._running:
            self._none_runs.set()
        if result.trouble_seconds:
            self.troubled_until = max(self.troubled_until, ended_at + result.trouble_seconds)
        metrics.RUN_DURATION[row.claim.handler].observe(ended_at - began_at)
        self.durations.observe(row.claim.handler, ended_at - began_at)
        self._end(row, result, began_at, ended_at)

    def _end(self, row: Claimed, result: RunResult, started_at: float, finished_at: float) -> None:
        self._vacate(row.claim)
        now = self._database_clock.at(finished_at)
        try:
            ended = ended_run(row, result, started_at=started_at, finished_at=finished_at, now=now)
        except Exception as fault:
            _log.exception("a run cannot be decided on", job=str(row.claim.id), run=row.claim.run_id)
            self._bury(row.claim, row.revision, f"it cannot be decided on: {type(fault).__name__}: {fault}")
            return
        self.completer.put(ended)

    def _stop_at_tick(self, row: Claimed, control: RunControl) -> asyncio.TimerHandle | None:
        """Under `cancel_other` the attempt is cancelled at the next tick."""
        tick = next_cancelling_tick(row.going)
        if tick is None:
            return None
        seconds = (tick - self._database_clock.now()).total_seconds()
        loop = asyncio.get_running_loop()
        return loop.call_later(max(0.0, seconds), control.stop, StopReason.CANCEL_REQUESTED)

    def _vacate(self, claim: Claim) -> None:
        """The handler has ended: its place is free."""
        self._leases.ended(claim)
        if claim.solo:
            self._due_again()  # the next of the quarantined need not wait for the poll

    def _bury(self, claim: Claim, revision: int, reason: str) -> None:
        """The job goes dead with its reason; its neighbours run."""
        self._vacate(claim)
        self.completer.put(buried(claim, revision, reason, self._clock.elapsed()))

    async def decide_again(self, moved: Sequence[EndedRun]) -> list[EndedRun]:
        """The definitions of these changed while they ran: read them again and decide on the new ones."""
        by_id = {ended.claim.id: ended for ended in moved}
        while True:
            try:
                rows = await self._store.read_claimed([ended.claim for ended in moved])
                break
            except (StoreUnavailable, StatementRefused) as error:
                _log.warning("changed definitions cannot be read yet", count=len(moved), error=str(error))
                await asyncio.sleep(random.uniform(0.2, 1.0))
        decided = []
        now = self._database_clock.now()
        for row in rows:
            ended = by_id[row.claim.id]
            if isinstance(row, Undecodable):
                self._bury(row.claim, row.revision, row.reason)
                continue
            decided.append(decided_again(row, ended, now))
        for job_id in by_id.keys() - {row.claim.id for row in rows}:
            self._leases.drop(by_id[job_id].claim)
        return decided

    async def ended(self) -> None:
        """Wait until no handler runs."""
        await self._none_runs.wait()


def _settlement_of(row: Claimed) -> tuple[str | None, Settlement | None]:
    """Why the row goes dead, or what is to be settled before it runs; of this row alone: its neighbours run."""
    try:
        return None, settle(row.going)
    except ScheduleError as fault:
        return f"its schedule cannot be evaluated: {fault}", None
    except Exception as fault:
        return f"it cannot be decided on: {type(fault).__name__}: {fault}", None


def _our_fault(request: RunRequest, error: BaseException) -> RunResult:
    """A fault of ours, or of a machine out of processes or files: not the job's, so it spends no attempt."""
    _log.error("execution failed", job=str(request.job_id), run=request.run_id, exc_info=error)
    return RunResult(
        outcome=RunOutcome.INTERRUPTED,
        error=f"ringcron could not run it: {type(error).__name__}: {error}",
        trouble_seconds=TROUBLE_SECONDS,
    )


def _start_cause(claim: Claim) -> str:
    """Label of the start delay: after a lapsed lease, after a failed attempt, or as planned."""
    if claim.lost > 0:
        return "recovered"
    return "retry" if claim.attempt > 1 else "planned"


def _settled(row: Claimed, settlement: Settlement) -> Claimed:
    """The claimed job as the settlement left it in PostgreSQL."""
    claim = dataclasses.replace(row.claim, scheduled_for=settlement.scheduled_for, cause=settlement.cause)
    if settlement.restart:
        claim = dataclasses.replace(claim, attempt=1, decided_until=claim.claimed_at)
    return dataclasses.replace(row, going=dataclasses.replace(row.going, claim=claim, kept=settlement.kept))
