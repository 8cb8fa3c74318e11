"""When a run is asked to stop, when it is ended, and what its end means. Pure: no clock is read, nothing is stopped.

    going ──(timeout │ stop │ one grace before the end of trust)──▶ asked ──(limit)──▶ ended by force

Invariant: the first reason counts. A run that ended before it noticed that it was asked keeps its own outcome, except
after its timeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from ringcron.models import RunOutcome
from ringcron_shard_worker.execution.request import RunResult, StopReason
from ringcron_shard_worker.handler_process.outcome import Ended

LAST_CHANCE_SECONDS: Final = 0.7
"""What a handler in the event loop gets that was asked only when trust was over: in a worker that was stopped and wakes
past it. Less than the guard gives that worker (guard.WAKE_SECONDS)."""
FORESTALL_SECONDS: Final = 0.05
"""So much before the guard would kill the worker it exits by itself, with a line in the log."""


class Timeout(StrEnum):
    """The one reason that is not the worker's."""

    TIMED_OUT = "it timed out"


Why = StopReason | Timeout


@dataclass(slots=True)
class Supervision:
    """The state of one run. All instants are elapsed seconds; `began_at` is None until the handler is about to run."""

    timeout_seconds: float | None
    grace_seconds: float
    own_process: bool
    began_at: float | None = None
    asked: Why | None = None
    asked_at: float = inf

    def reason_to_ask(self, now: float, trust_until: float, stop_reason: StopReason | None) -> Why | None:
        """Why the run has to be asked to stop now; None while it need not be."""
        if stop_reason is not None:
            return stop_reason
        if now >= self._timeout_at():
            return Timeout.TIMED_OUT
        if now >= trust_until - self.grace_seconds:
            return StopReason.TRUST_ENDED
        return None

    def ask(self, why: Why, now: float) -> None:
        """Note that it was asked."""
        self.asked = why
        self.asked_at = now

    def next_look(self, trust_until: float) -> float:
        """When something is to be decided again, if nothing happens before."""
        if self.asked is None:
            return min(self._timeout_at(), trust_until - self.grace_seconds)
        return inf if self.own_process else self.exit_at(trust_until)

    def limit(self, trust_until: float) -> float:
        """Past this instant the guard ends what is left: the handler process, or the whole worker.

        A handler process that was asked has one grace; none where the job may already run elsewhere.
        """
        if self.asked is None or not self.own_process:
            return trust_until
        if self.asked is StopReason.LEASE_LOST:
            return self.asked_at
        return min(trust_until, self.asked_at + self.grace_seconds)

    def exit_at(self, trust_until: float) -> float:
        """When the worker itself has to exit, for a handler in its event loop that was asked and goes on."""
        in_time = trust_until - FORESTALL_SECONDS
        return in_time if self.asked_at < in_time else self.asked_at + LAST_CHANCE_SECONDS

    def _timeout_at(self) -> float:
        if self.timeout_seconds is None or self.began_at is None:
            return inf
        return self.began_at + self.timeout_seconds

    def judge(self, ended: Ended, now: float, trust_until: float) -> RunResult:
        """What the end of the handler means for the run."""
        asked = self.asked
        if asked is None and ended.died and now >= trust_until:
            asked = StopReason.TRUST_ENDED  # the guard was faster
        if asked is None or (asked is not Timeout.TIMED_OUT and not ended.stopped and not ended.died):
            return _own(ended)
        how = "; its process was killed" if ended.died else ""
        if asked is Timeout.TIMED_OUT:
            return RunResult(outcome=RunOutcome.TIMED_OUT, error=f"timed out after {self.timeout_seconds:g} s{how}")
        cancelled = asked is StopReason.CANCEL_REQUESTED
        outcome = RunOutcome.CANCELLED if cancelled else RunOutcome.INTERRUPTED
        return RunResult(outcome=outcome, error=f"stopped: {asked.value}{how}")


def _own(ended: Ended) -> RunResult:
    if ended.error is None:
        return RunResult(outcome=RunOutcome.SUCCEEDED, result=ended.result)
    return RunResult(
        outcome=RunOutcome.FAILED,
        error=ended.error,
        retry_after_seconds=ended.retry_after_seconds,
        dead=ended.dead,
    )
