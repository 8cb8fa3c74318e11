"""When a run is asked to stop, when it is ended, and what its end means."""

from __future__ import annotations

from math import inf

import pytest

from ringcron.models import RunOutcome
from ringcron_shard_worker.execution.request import StopReason
from ringcron_shard_worker.execution.supervision import Supervision, Timeout
from ringcron_shard_worker.handler_process.outcome import Ended

TRUST = 100.0
GRACE = 2.0


def supervision(
    *, timeout: float | None = None, own_process: bool = True, began_at: float | None = 10.0
) -> Supervision:
    return Supervision(timeout, GRACE, own_process, began_at)


def test_nothing_is_asked_before_there_is_a_reason() -> None:
    going = supervision(timeout=30)

    assert going.reason_to_ask(39.9, TRUST, None) is None
    assert going.next_look(TRUST) == 40.0
    assert going.limit(TRUST) == TRUST


def test_the_timeout_counts_from_when_the_handler_was_called() -> None:
    going = supervision(timeout=30, began_at=None)

    assert going.reason_to_ask(90, TRUST, None) is None
    going.began_at = 85.0
    assert going.reason_to_ask(90, inf, None) is None
    assert going.reason_to_ask(115, inf, None) is Timeout.TIMED_OUT


def test_one_grace_before_the_end_of_trust_it_is_asked() -> None:
    assert supervision().reason_to_ask(97.9, TRUST, None) is None
    assert supervision().reason_to_ask(98.0, TRUST, None) is StopReason.TRUST_ENDED


def test_the_workers_reason_goes_before_the_others() -> None:
    assert supervision(timeout=1).reason_to_ask(99, TRUST, StopReason.DRAINED) is StopReason.DRAINED


def test_a_handler_process_has_one_grace_and_never_more_than_its_trust() -> None:
    going = supervision()
    going.ask(StopReason.CANCEL_REQUESTED, 50)
    assert going.limit(TRUST) == 52

    late = supervision()
    late.ask(StopReason.CANCEL_REQUESTED, 99)
    assert late.limit(TRUST) == TRUST


def test_a_handler_process_has_no_grace_once_the_lease_is_lost() -> None:
    going = supervision()
    going.ask(StopReason.LEASE_LOST, 50)

    assert going.limit(TRUST) == 50


def test_a_handler_in_the_loop_is_limited_by_trust_alone() -> None:
    going = supervision(own_process=False)
    going.ask(StopReason.CANCEL_REQUESTED, 50)

    assert going.limit(TRUST) == TRUST
    assert TRUST - 0.1 < going.exit_at(TRUST) < TRUST
    assert going.exit_at(TRUST + 50) > TRUST + 49  # renewed: it goes on being waited for


def test_a_worker_that_wakes_past_the_end_of_trust_gives_a_last_chance() -> None:
    going = supervision(own_process=False)
    going.ask(StopReason.TRUST_ENDED, TRUST + 30)

    assert TRUST + 30 < going.exit_at(TRUST) < TRUST + 31


def test_a_run_that_was_not_asked_keeps_its_own_outcome() -> None:
    done = supervision().judge(Ended(result=b"1"), 50, TRUST)
    failed = supervision().judge(Ended(error="no", retry_after_seconds=3, dead=True), 50, TRUST)

    assert (done.outcome, done.result, done.error) == (RunOutcome.SUCCEEDED, b"1", None)
    assert (failed.outcome, failed.error, failed.retry_after_seconds, failed.dead) == (RunOutcome.FAILED, "no", 3, True)


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (StopReason.CANCEL_REQUESTED, RunOutcome.CANCELLED),
        (StopReason.DRAINED, RunOutcome.INTERRUPTED),
        (StopReason.TRUST_ENDED, RunOutcome.INTERRUPTED),
        (StopReason.LEASE_LOST, RunOutcome.INTERRUPTED),
    ],
)
def test_a_run_that_stopped_because_it_was_asked(reason: StopReason, outcome: RunOutcome) -> None:
    for ended in (Ended(stopped=True), Ended(died=True, error="signal 9"), Ended(stopped=True, error="ValueError")):
        going = supervision()
        going.ask(reason, 50)
        assert going.judge(ended, 51, TRUST).outcome is outcome


def test_a_run_that_ended_before_it_noticed_keeps_its_own_outcome() -> None:
    going = supervision()
    going.ask(StopReason.DRAINED, 50)

    assert going.judge(Ended(result=b"1"), 51, TRUST).outcome is RunOutcome.SUCCEEDED


def test_but_not_after_its_timeout() -> None:
    going = supervision(timeout=30)
    going.ask(Timeout.TIMED_OUT, 40)
    result = going.judge(Ended(result=b"1"), 41, TRUST)

    assert result.outcome is RunOutcome.TIMED_OUT
    assert result.error == "timed out after 30 s"


def test_a_process_that_the_guard_killed_at_the_end_of_trust_was_interrupted() -> None:
    died = Ended(died=True, error="the handler process was ended by signal 9 (SIGKILL)")

    assert supervision().judge(died, TRUST + 1, TRUST).outcome is RunOutcome.INTERRUPTED
    assert supervision().judge(died, TRUST - 1, TRUST).outcome is RunOutcome.FAILED
