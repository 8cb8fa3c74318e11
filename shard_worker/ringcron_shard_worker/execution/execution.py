"""Execution: one `begin` or `run` per claimed job, from the call of its handler to a result.

Invariant: a result is there only when nothing of the run goes on here any more. A handler in the event loop that does
not let go keeps its run open (its lease goes on being renewed, so that the job never runs twice at a time) until its
trust ends; then the worker itself leaves (in_loop.py).

To be started in the main thread: handler processes die with the thread that started them.
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys
from collections.abc import Sequence
from math import inf

import structlog

from ringcron import metrics
from ringcron.clock import Clock
from ringcron.errors import HandlerNotFound
from ringcron.handlers import Handler, HandlerRegistry
from ringcron.models import RunOutcome
from ringcron_shard_worker.builtin import BuiltinSettings
from ringcron_shard_worker.execution.going import GoingInProcess, leave
from ringcron_shard_worker.execution.guard_link import GuardLink
from ringcron_shard_worker.execution.handler_process import HandlerProcessUnready
from ringcron_shard_worker.execution.in_loop import LOOK_SECONDS, LoopRuns, Over
from ringcron_shard_worker.execution.pool import IDLE_SECONDS, HandlerPool
from ringcron_shard_worker.execution.request import RunControl, RunRequest, RunResult, StopReason
from ringcron_shard_worker.execution.supervision import Supervision
from ringcron_shard_worker.execution.trouble import GIVE_UP_SECONDS, Trouble
from ringcron_shard_worker.execution.worker_deadline import WorkerDeadline
from ringcron_shard_worker.handler_process import prctl
from ringcron_shard_worker.handler_process.outcome import Ended

_log = structlog.get_logger(__name__)


class Execution:
    """Runs handlers for one worker. `modules` and `builtin` are what `registry` was made from (builtin.full_registry):
    handler processes make theirs from the same."""

    def __init__(
        self,
        registry: HandlerRegistry,
        clock: Clock,
        *,
        modules: Sequence[str],
        builtin: BuiltinSettings,
        grace_seconds: float,
        log_format: str = "json",
        log_level: str = "info",
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._grace_seconds = grace_seconds
        self._controls: set[RunControl] = set()
        self._abandoned: set[asyncio.Task[Ended]] = set()
        hello = {
            "path": sys.path,
            "modules": list(modules),
            "builtin": builtin.message(),
            "log_format": log_format,
            "log_level": log_level,
        }
        self._guard = GuardLink(clock, self._stop_everything)
        self._deadline = WorkerDeadline(clock, self._guard.worker_deadline)
        self._trouble = Trouble()
        self._pool = HandlerPool(hello, self._guard, clock, idle_seconds=idle_seconds)
        self._in_loop = LoopRuns(self._deadline, clock, grace_seconds=grace_seconds, leave=lambda: leave())

    @property
    def guard_pid(self) -> int | None:
        """The guard's process."""
        return self._guard.pid

    async def start(self) -> None:
        """Start the guard, and a first handler process where one will be needed. OSError where no guard can be."""
        if not faulthandler.is_enabled():
            faulthandler.enable()  # the guard's SIGABRT then shows what every thread was doing
        if not prctl.granted_here():
            _log.warning("no parent-death signal on this platform: handler processes end with the worker's socket only")
        await self._guard.start()
        if any(not self._registry.get(name).is_async for name in self._registry.names()):
            self._pool.warm_up()

    async def close(self) -> None:
        """End handler processes and guard. Runs that are still going in handler processes are killed."""
        await self._pool.close()
        self._deadline.close()
        await self._guard.close()

    def begin(self, request: RunRequest, control: RunControl, over: Over) -> bool:
        """Call an async handler in the event loop, and `over` when it has ended.

        False where that cannot be: the run needs a process of its own, or must not begin, or there is no guard at the
        moment. Then it has to be awaited with `run`.
        """
        handler = self._registry.find(request.handler)
        if (
            handler is None
            or request.solo
            or not handler.is_async
            or not self._guard.up
            or not self._may_begin(control)
        ):
            return False
        self._in_loop.start(handler, request, control, over)
        return True

    async def run(self, request: RunRequest, control: RunControl) -> RunResult:
        """Run one job's handler to its end. Never raises for what the handler does."""
        try:
            handler = self._registry.get(request.handler)
        except HandlerNotFound as error:
            return RunResult(outcome=RunOutcome.FAILED, error=str(error))
        if not await self._guard.ready(self._grace_seconds):
            return RunResult(outcome=RunOutcome.INTERRUPTED, error="not started: the worker has no guard")
        if not self._may_begin(control):
            return self._not_started(control)
        if request.solo or not handler.is_async:
            return await self._run_in_process(handler, request, control)
        ended: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()
        run = self._in_loop.start(handler, request, control, lambda result, *_: ended.set_result(result))
        try:
            return await ended
        except asyncio.CancelledError:
            self._in_loop.abandon(run)
            raise

    def _may_begin(self, control: RunControl) -> bool:
        return control.stop_reason is None and self._clock.elapsed() < control.trust_until - self._grace_seconds

    async def _run_in_process(self, handler: Handler, request: RunRequest, control: RunControl) -> RunResult:
        supervision = Supervision(request.timeout_seconds, self._grace_seconds, own_process=True)
        going = GoingInProcess(handler, request, self._pool, self._clock)
        self._controls.add(control)
        try:
            result = await self._supervise(going, supervision, request, control)
        except HandlerProcessUnready as error:
            return self._unready(error, request, control)
        finally:
            self._controls.discard(control)
            if not going.done.done():  # this very call was cancelled
                self._abandon(going)
        if going.began_at is not None:
            self._trouble.over()
        return result

    async def _supervise(
        self, going: GoingInProcess, supervision: Supervision, request: RunRequest, control: RunControl
    ) -> RunResult:
        changed = asyncio.Event()
        control.listen(changed.set)
        going.listen(changed.set)
        warn_at = inf
        while True:
            going.limit(supervision.limit(control.trust_until))
            if going.done.done():
                break
            now = self._clock.elapsed()
            supervision.began_at = going.began_at
            if supervision.asked is None:
                why = supervision.reason_to_ask(now, control.trust_until, control.stop_reason)
                if why is not None:
                    if why is StopReason.TRUST_ENDED:
                        metrics.TRUST_ENDED.inc()
                    supervision.ask(why, now)
                    going.ask()
                    warn_at = now + self._grace_seconds + LOOK_SECONDS  # the guard is at work
                    continue
            elif now >= warn_at:
                warn_at = now + max(self._grace_seconds, LOOK_SECONDS)
                self._warn(request, supervision, going, now)
            wait = min(supervision.next_look(control.trust_until), warn_at) - now
            await _changed_within(changed, min(max(wait, 0.0), LOOK_SECONDS))
        return supervision.judge(going.ended(), self._clock.elapsed(), control.trust_until)

    def _abandon(self, going: GoingInProcess) -> None:
        going.limit(0)
        going.done.cancel()
        self._abandoned.add(going.done)
        going.done.add_done_callback(self._abandoned.discard)

    def _not_started(self, control: RunControl) -> RunResult:
        why = control.stop_reason or StopReason.TRUST_ENDED
        cancelled = why is StopReason.CANCEL_REQUESTED
        return RunResult(
            outcome=RunOutcome.CANCELLED if cancelled else RunOutcome.INTERRUPTED, error=f"not started: {why.value}"
        )

    def _unready(self, error: HandlerProcessUnready, request: RunRequest, control: RunControl) -> RunResult:
        if control.stop_reason is not None:
            return self._not_started(control)
        pause = self._trouble.met(self._clock.elapsed())
        if pause is None:
            _log.error(
                "a run fails: for too long no handler process could be started", run=request.run_id, error=str(error)
            )
            how_long = f"no handler process could be started here for {GIVE_UP_SECONDS:g} s"
            return RunResult(outcome=RunOutcome.FAILED, error=f"{how_long}: {error}")
        _log.warning(
            "a run is handed back: no handler process is ready", run=request.run_id, error=str(error), pause=pause
        )
        return RunResult(outcome=RunOutcome.INTERRUPTED, error=f"not started: {error}", trouble_seconds=pause)

    def _warn(self, request: RunRequest, supervision: Supervision, going: GoingInProcess, now: float) -> None:
        _log.warning(
            "a handler goes on after it was asked to stop",
            handler=request.handler,
            job=str(request.job_id),
            run=request.run_id,
            why=supervision.asked,
            where=going.where(),
            asked_seconds_ago=round(now - supervision.asked_at, 1),
        )

    def _stop_everything(self) -> None:
        _log.critical(
            "there is no guard and none can be started: every run is stopped",
            running=len(self._controls) + len(self._in_loop),
        )
        for control in list(self._controls):
            control.stop(StopReason.TRUST_ENDED)
        self._in_loop.stop_all(StopReason.TRUST_ENDED)
        self._pool.kill_without_guard()


async def _changed_within(changed: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        pass  # time to look again
    changed.clear()
