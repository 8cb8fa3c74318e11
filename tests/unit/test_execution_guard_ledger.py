"""What the guard decides, from the messages of the worker."""

from __future__ import annotations

from math import inf

from ringcron_shard_worker.execution.guard import WAKE_SECONDS, Ledger

NOBODY = 2**22 + 1  # above the largest process number that Linux gives


def fed(text: str) -> Ledger:
    ledger = Ledger()
    ledger.feed(text.encode())
    return ledger


def test_a_group_is_due_at_its_deadline_and_only_once() -> None:
    ledger = fed(f"watch {NOBODY} 50.5\n")

    assert not ledger.due_groups(50.4)
    assert list(ledger.due_groups(50.5)) == [NOBODY]
    assert not ledger.due_groups(60)
    assert NOBODY in ledger.groups  # still to be killed if the worker dies


def test_a_later_deadline_replaces_the_earlier_one() -> None:
    assert not fed(f"watch {NOBODY} 50\nwatch {NOBODY} 90.0\n").due_groups(60)
    assert fed(f"watch {NOBODY} inf\nwatch {NOBODY} 0\n").due_groups(1)


def test_what_a_dead_leader_left_behind_is_due_at_once_and_then_forgotten() -> None:
    ledger = fed(f"watch {NOBODY} inf\nforget {NOBODY}\n")

    assert list(ledger.due_groups(0)) == [NOBODY]
    assert not ledger.groups
    assert not ledger.due_groups(inf)


def test_messages_may_arrive_in_pieces() -> None:
    ledger = fed(f"watch {NOBODY} 5")
    assert not ledger.groups
    ledger.feed(b"0.0\nworker 7")
    assert ledger.groups[NOBODY].deadline == 50.0
    assert ledger.worker_deadline == inf
    ledger.feed(b"0.0\n")
    assert ledger.worker_deadline == 70.0


def test_a_running_worker_is_due_at_its_deadline() -> None:
    assert fed("worker 70.0\n").worker_due_at() == 70.0
    assert fed("worker 70.0\nworker inf\n").worker_due_at() == inf


def test_a_worker_that_was_stopped_gets_running_time_first() -> None:
    ledger = fed("worker 70.0\n")
    ledger.worker_stopped_at = 95.0
    assert ledger.worker_due_at() == 95.0 + WAKE_SECONDS

    ledger.worker_stopped_at = 30.0
    assert ledger.worker_due_at() == 70.0


def test_the_sleep_ends_at_the_next_deadline_and_is_never_long_while_there_is_one() -> None:
    assert fed("").sleep_seconds(10) is None
    assert fed(f"watch {NOBODY} inf\n").sleep_seconds(10) is None
    assert fed(f"watch {NOBODY} 10.25\n").sleep_seconds(10) == 0.25
    assert fed(f"watch {NOBODY} 9\n").sleep_seconds(10) == 0
    assert fed("worker 5000.0\n").sleep_seconds(10) == 1.0
    near = fed("worker 10.5\n").sleep_seconds(10)
    assert near is not None
    assert near < 0.1
