"""From claims to completions: read, settle, run, decide.

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
from ringcron.lifecycle import Completion, after_run
from ringcron.models import Claim, JobState, RunOutcome
from ringcron.policies import Settlement, next_cancelling_tick, settle
from ringcron.store.answers import EndedRun
from ringcron.store.claimed import Claimed, Undecodable
from ringcron.store.worker import WorkerStore
from ringcron_shard_worker.completer import Completer
from ringcron_shard_worker.execution import Execution, RunControl, RunRequest, RunResult, StopReason
from ringcron_shard_worker.leases import Leases

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
    ) -> None:
        self._store = store
        self._leases = leases
        self._execution = execution
        self._clock = clock
        self._database_clock = database_clock
        self._tasks: set[asyncio.Task[None]] = set()
        self.troubled_until = 0.0
        """Until when (elapsed) nothing should be claimed here: a run could not even be begun."""
        self.completer = Completer(store, leases, self.decide_again, due_again)

    async def start(self, claims: Sequence[Claim], trust_until: float) -> None:
        """Take over fresh claims. Raises StoreUnavailable where they could not be read or settled; those that were not
        started are then no longer among the leases, for the claimer to hand back."""
        for claim in claims:
            self._leases.add(claim, RunControl(trust_until))
        started: set[Claim] = set()
        try:
            decoded = await self._store.read_claimed(claims)
            for row in decoded:
                if isinstance(row, Undecodable):
                    started.add(row.claim)
                    self._bury(row.claim, row.revision, row.reason)
            await self._settle_and_run([row for row in decoded if isinstance(row, Claimed)], started)
        finally:
            for claim in claims:
                if claim not in started:
                    self._leases.drop(claim)

    async def _settle_and_run(self, rows: Sequence[Claimed], started: set[Claim]) -> None:
        to_settle: list[tuple[Claimed, Settlement]] = []
        for row in rows:
            try:
                settlement = settle(row.going)
            except ScheduleError as fault:
                started.add(row.claim)
                self._bury(row.claim, row.revision, f"its schedule cannot be evaluated: {fault}")
                continue
            except Exception as fault:  # of this row alone: its neighbours run
                started.add(row.claim)
                self._bury(row.claim, row.revision, f"it cannot be decided on: {type(fault).__name__}: {fault}")
                continue
            if settlement is None:
                started.add(row.claim)
                self._begin(row)
            else:
                to_settle.append((row, settlement))
        if not to_settle:
            return
        passed = await self._settle([(row.claim, settlement) for row, settlement in to_settle])
        for row, settlement in to_settle:
            if row.claim.id not in passed:
                continue
            if settlement.skip is not None:
                metrics.OCCURRENCES_MISSED[settlement.skip.reason].inc(settlement.skip.count)
            if not settlement.release:
                started.add(row.claim)
                self._begin(_settled(row, settlement))

    def _begin(self, row: Claimed) -> None:
        """Run it, or end it unrun where a cancel was requested before anybody could stop it."""
        if row.cancel_requested:
            self._end_unrun(row, RunOutcome.CANCELLED)
        else:
            self._spawn(row)

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

    def _spawn(self, row: Claimed) -> None:
        task = asyncio.create_task(self._run(row), name=row.claim.run_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, row: Claimed) -> None:
        claim = row.claim
        held = self._leases.get(claim.id, claim.lease_generation)
        if held is None:
            return
        started_at = self._clock.elapsed()
        delay = (self._database_clock.now() - claim.next_run_at).total_seconds()
        metrics.RUN_START_DELAY[_start_cause(claim)].observe(max(0.0, delay))
        request = RunRequest(
            job_id=claim.id,
            run_id=claim.run_id,
            handler=claim.handler,
            payload=row.going.definition.payload,
            scheduled_for=claim.scheduled_for,
            attempt=claim.attempt,
            lease_generation=claim.lease_generation,
            timeout_seconds=row.going.definition.timeout_seconds,
            solo=claim.lost > 0,
        )
        stop_at_tick: asyncio.TimerHandle | None = None
        try:
            stop_at_tick = self._stop_at_tick(row, held.control)
            result = await self._execution.run(request, held.control)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # A fault of ours, or of a machine out of processes or files: not the job's, so it spends no attempt.
            _log.exception("execution failed", job=str(claim.id), run=claim.run_id)
            result = RunResult(
                outcome=RunOutcome.INTERRUPTED,
                error=f"ringcron could not run it: {type(error).__name__}: {error}",
                trouble_seconds=TROUBLE_SECONDS,
            )
        finally:
            if stop_at_tick is not None:
                stop_at_tick.cancel()
        finished_at = self._clock.elapsed()
        self.troubled_until = max(self.troubled_until, finished_at + result.trouble_seconds)
        self._leases.ended(claim)
        metrics.RUN_DURATION[claim.handler].observe(finished_at - started_at)
        try:
            ended = self._ended(row, result, started_at, finished_at)
        except Exception as fault:
            _log.exception("a run cannot be decided on", job=str(claim.id), run=claim.run_id)
            self._bury(claim, row.revision, f"it cannot be decided on: {type(fault).__name__}: {fault}")
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

    def _ended(self, row: Claimed, result: RunResult, started_at: float, finished_at: float) -> EndedRun:
        completion = after_run(
            row.going,
            result.outcome,
            now=self._database_clock.now(),
            random=random.random(),
            error=result.error,
            retry_after_seconds=result.retry_after_seconds,
            dead=result.dead,
        )
        return EndedRun(
            claim=row.claim,
            revision=row.revision,
            outcome=result.outcome,
            error=result.error,
            result=result.result,
            started_at=started_at,
            finished_at=finished_at,
            completion=completion,
            retry_after_seconds=result.retry_after_seconds,
            dead=result.dead,
        )

    def _end_unrun(self, row: Claimed, outcome: RunOutcome) -> None:
        now = self._clock.elapsed()
        result = RunResult(outcome=outcome, error=None, result=None, retry_after_seconds=None, dead=False)
        self._leases.ended(row.claim)
        self.completer.put(self._ended(row, result, now, now))

    def _bury(self, claim: Claim, revision: int, reason: str) -> None:
        """The job goes dead with its reason; its neighbours run."""
        now = self._clock.elapsed()
        self._leases.ended(claim)
        completion = Completion(
            state=JobState.DEAD,
            next_run_at=None,
            delay_seconds=0.0,
            scheduled_for=claim.scheduled_for,
            cause=claim.cause,
            attempt=claim.attempt,
            lost=0,
            decided_until=claim.decided_until,
            kept=(),
            dead_reason=reason,
        )
        self.completer.put(
            EndedRun(
                claim=claim,
                revision=revision,
                outcome=RunOutcome.FAILED,
                error=reason,
                result=None,
                started_at=now,
                finished_at=now,
                completion=completion,
            )
        )

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
        for row in rows:
            ended = by_id[row.claim.id]
            if isinstance(row, Undecodable):
                self._bury(row.claim, row.revision, row.reason)
                continue
            completion = after_run(
                row.going,
                ended.outcome,
                now=self._database_clock.now(),
                random=random.random(),
                error=ended.error,
                retry_after_seconds=ended.retry_after_seconds,
                dead=ended.dead,
            )
            decided.append(dataclasses.replace(ended, revision=row.revision, completion=completion))
        for job_id in by_id.keys() - {row.claim.id for row in rows}:
            self._leases.drop(by_id[job_id].claim)
        return decided

    async def ended(self) -> None:
        """Wait until no handler runs."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))


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
