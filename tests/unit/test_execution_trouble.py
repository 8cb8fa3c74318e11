"""How long a worker claims nothing while no handler process can be started, and when it says so on its jobs."""

from __future__ import annotations

from ringcron_shard_worker.execution.trouble import GIVE_UP_SECONDS, PAUSE_SECONDS, Trouble


def test_pauses_double_up_to_a_longest_one() -> None:
    trouble, now, pauses = Trouble(), 100.0, []
    for _ in range(7):
        pause = trouble.met(now)
        assert pause is not None
        pauses.append(pause)
        now += pause
    assert pauses == [1, 2, 4, 8, 16, 16, 16]
    assert PAUSE_SECONDS == (1, 16)


def test_failures_that_come_together_are_one() -> None:
    trouble = Trouble()
    assert [trouble.met(now) for now in (10.0, 10.25, 10.5)] == [1, 0.75, 0.5]
    assert trouble.met(11.0) == 2


def test_it_ends_and_begins_anew_once_a_process_came_up() -> None:
    trouble, now = Trouble(), 0.0
    while (pause := trouble.met(now)) is not None:
        now += pause
    assert GIVE_UP_SECONDS <= now < GIVE_UP_SECONDS + PAUSE_SECONDS[1]
    trouble.over()
    assert trouble.met(now + 30) == 1


def test_a_failure_long_ago_is_forgotten() -> None:
    trouble = Trouble()
    trouble.met(0.0)
    assert trouble.met(GIVE_UP_SECONDS) == 1
