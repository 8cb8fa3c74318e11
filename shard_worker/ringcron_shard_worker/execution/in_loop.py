"""Async handlers in the worker's event loop: one task for each run, one watch over all of them.

Invariant: a run is over only when its handler has ended; nothing can end that but itself or the end of the worker. One
that does not let go keeps its run open until its trust ends; then the worker leaves. The guard never knows a later
deadline than the earliest end of trust (WorkerDeadline).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any, Final

import structlog

from ringcron import metrics
from ringcron.clock import Clock
from ringcron.handlers import Handler
from ringcron_shard_worker.execution.going import EXIT_STATUS
from ringcron_shard_worker.execution.request import RunControl, RunRequest, RunResult, StopReason
from ringcron_shard_worker.execution.supervision import Supervision
from ringcron_shard_worker.execution.worker_deadline import WorkerDeadline
from ringcron_shard_worker.handler_process.context import Context
from ringcron_shard_worker.handler_process.outcome import Ended, raised, returned

LOOK_SECONDS: Final = 1.0
"""The longest time between two looks: the event loop's timers do not count the time that the machine was suspended."""

Over = Callable[[RunResult, float, float], object]
"""What is told how a run ended, and when (elapsed seconds) its handler was called and had ended."""

_bind = structlog.contextvars.bind_contextvars
_log = structlog.get_logger(__name__)


class LoopRun:
    """One run."""

    __slots__ = ("asked", "context", "control", "handler", "over", "request", "supervision", "task", "timer", "warn_at")

    def __init__(
        self, handler: Handler, request: RunRequest, control: RunControl, over: Over, supervision: Supervision
    ) -> None:
        self.handler = handler
        self.request = request
        self.control = control
        self.over: Over | None = over
        self.supervision = supervision
        self.asked = False
        self.warn_at = inf
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None]
        self.context = Context(
            job_id=request.job_id,
            run_id=request.run_id,
            scheduled_for=request.scheduled_for,
            attempt=request.attempt,
            lease_generation=request.lease_generation,
            traceparent=request.traceparent,
            tracestate=request.tracestate,
        )

    def where(self) -> str | None:
        """Where in its code the handler waits."""
        frame = getattr(getattr(self.task.get_coro(), "cr_await", None), "cr_frame", None)  # the handler's own
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None


class LoopRuns:
    """Every run in this event loop. `leave` ends the worker at once."""

    def __init__(
        self, deadline: WorkerDeadline, clock: Clock, *, grace_seconds: float, leave: Callable[[], object]
    ) -> None:
        self._deadline = deadline
        self._clock = clock
        self._grace_seconds = grace_seconds
        self._leave = leave
        self._runs: set[LoopRun] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._watch_at = inf

    def __len__(self) -> int:
        return len(self._runs)

    def start(self, handler: Handler, request: RunRequest, control: RunControl, over: Over) -> LoopRun:
        """Call the handler soon, and `over` when it has ended."""
        supervision = Supervision(request.timeout_seconds, self._grace_seconds, own_process=False)
        run = LoopRun(handler, request, control, over, supervision)
        self._runs.add(run)
        control.listen(lambda: self._look(run))
        self._deadline.put(run, control.trust_until)
        self._watch_by(supervision.next_look(control.trust_until))
        run.task = asyncio.get_running_loop().create_task(self._call(run))
        return run

    def abandon(self, run: LoopRun) -> None:
        """Nobody waits for it any more: it is cancelled, and its trust ends nothing."""
        run.over = None
        run.task.cancel()
        self._forget(run)

    def stop_all(self, reason: StopReason) -> None:
        """Ask every run to stop."""
        for run in tuple(self._runs):
            run.control.stop(reason)

    async def _call(self, run: LoopRun) -> None:
        request = run.request
        run.supervision.began_at = self._clock.elapsed()
        if request.timeout_seconds is not None:
            loop = asyncio.get_running_loop()
            run.timer = loop.call_later(request.timeout_seconds, self._look, run)
        _bind(job=request.run_id.partition(".")[0], run=request.run_id)
        if request.trace is not None:
            request.trace.enter()
        try:
            value = await run.handler.function(run.context, request.payload)
        except BaseException as error:
            ended = raised(error, stopped=run.asked)
        else:
            ended = returned(value, stopped=run.asked)
        self._ended(run, ended)

    def _ended(self, run: LoopRun, ended: Ended) -> None:
        self._forget(run)
        over, run.over = run.over, None
        if over is None:
            return
        now = self._clock.elapsed()
        began_at = run.supervision.began_at
        over(run.supervision.judge(ended, now, run.control.trust_until), now if began_at is None else began_at, now)

    def _forget(self, run: LoopRun) -> None:
        self._runs.discard(run)
        self._deadline.drop(run)
        run.control.listen(None)
        if run.timer is not None:
            run.timer.cancel()

    def _look(self, run: LoopRun) -> None:
        """Decide on one run, and be there when something is to be decided again."""
        if run.over is not None:
            self._watch_by(self._decide(run))

    def _look_at_all(self) -> None:
        self._watch, self._watch_at = None, inf
        nearest = min((self._decide(run) for run in tuple(self._runs)), default=inf)
        if self._runs:
            self._watch_by(nearest)

    def _watch_by(self, at: float) -> None:
        """Look at every run again at this instant (elapsed seconds), or sooner."""
        if at >= self._watch_at:
            return
        if self._watch is not None:
            self._watch.cancel()
        now = self._clock.elapsed()
        wait = min(max(at - now, 0.0), LOOK_SECONDS)
        self._watch_at = now + wait
        self._watch = asyncio.get_running_loop().call_later(wait, self._look_at_all)

    def _decide(self, run: LoopRun) -> float:
        """Ask it to stop, warn, or leave, as its supervision says; returns when to decide again."""
        now, supervision, trust_until = self._clock.elapsed(), run.supervision, run.control.trust_until
        self._deadline.put(run, supervision.limit(trust_until))
        if supervision.asked is None:
            why = supervision.reason_to_ask(now, trust_until, run.control.stop_reason)
            if why is None:
                return supervision.next_look(trust_until)
            if why is StopReason.TRUST_ENDED:
                metrics.TRUST_ENDED.inc()
            supervision.ask(why, now)
            self._ask(run)
            run.warn_at = now + self._grace_seconds
        elif now >= run.warn_at:
            run.warn_at = now + max(self._grace_seconds, LOOK_SECONDS)
            self._warn(run, now)
        if now >= supervision.exit_at(trust_until):
            self._end_worker(run)
        return min(supervision.next_look(trust_until), run.warn_at)

    def _ask(self, run: LoopRun) -> None:
        if not run.task.cancel():
            return
        run.asked = True
        run.context.ask_to_stop()
        if run.supervision.began_at is None:  # then its handler is never called
            run.task.add_done_callback(lambda _: self._ended(run, Ended(stopped=True)))

    def _warn(self, run: LoopRun, now: float) -> None:
        _log.warning(
            "a handler goes on after it was asked to stop",
            asked_seconds_ago=round(now - run.supervision.asked_at, 1),
            **_about(run),
        )

    def _end_worker(self, run: LoopRun) -> None:
        _log.critical(
            "the worker exits: a handler in its event loop does not stop and its trust has ended",
            status=EXIT_STATUS,
            **_about(run),
        )
        self._leave()


def _about(run: LoopRun) -> dict[str, Any]:
    return {
        "handler": run.request.handler,
        "job": str(run.request.job_id),
        "run": run.request.run_id,
        "why": run.supervision.asked,
        "where": run.where(),
    }
