"""The ring as people see it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ringcron.models import Arc, Slice, WorkerReport
from ringcron.store.lag import Lag, SlotLag
from ringcron_api.shards import arcs_of, shards_answer
from tests.support.values import report_of

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def holding(
    worker_id: str, *arcs: tuple[int, int], handlers: tuple[str, ...] = ("log",), **columns: Any
) -> WorkerReport:
    held = Slice(handlers=handlers, arcs=tuple(Arc(lo=lo, hi=hi) for lo, hi in arcs))
    return report_of(worker_id, handlers=handlers, slices=(held,), **columns)


def late(*slots: SlotLag) -> Lag:
    return Lag(taken_at=NOW, slots=slots)


def test_nobody_is_there() -> None:
    answer = shards_answer([], late(SlotLag(handler="log", slot=9, due=2, lag_seconds=1.5)))
    assert answer == {
        "items": [],
        "slots": [{"slot": 9, "lagSeconds": 1.5, "due": 2}],
        "unowned": [[0, 4095]],
        "epoch": 0,
        "takenAt": "2027-01-01T00:00:00Z",
    }


def test_lag_is_counted_for_the_owner() -> None:
    workers = [holding("a.1", (0, 99), (200, 4095), running=3, epoch=4), holding("b.1", (100, 149), epoch=5)]
    lag = late(
        SlotLag(handler="log", slot=99, due=1, lag_seconds=2.0),
        SlotLag(handler="log", slot=100, due=5, lag_seconds=9.0),
        SlotLag(handler="log", slot=200, due=2, lag_seconds=7.0),
        SlotLag(handler="log", slot=180, due=4, lag_seconds=1.0),
    )
    answer = shards_answer(workers, lag)
    assert answer["items"] == [
        {"worker": "a.1", "arcs": [[0, 99], [200, 4095]], "lagSeconds": 7.0, "due": 3, "running": 3},
        {"worker": "b.1", "arcs": [[100, 149]], "lagSeconds": 9.0, "due": 5, "running": 0},
    ]
    assert answer["unowned"] == [[150, 199]]
    assert answer["epoch"] == 5
    assert [row["slot"] for row in answer["slots"]] == [99, 100, 180, 200]


def test_each_ring_is_looked_at_by_itself() -> None:
    workers = [holding("a.1", (0, 4095)), holding("b.1", (0, 2047), handlers=("http",))]
    lag = late(
        SlotLag(handler="log", slot=5, due=1, lag_seconds=1.0), SlotLag(handler="http", slot=5, due=2, lag_seconds=3.0)
    )
    answer = shards_answer(workers, lag)
    assert [(row["lagSeconds"], row["due"]) for row in answer["items"]] == [(1.0, 1), (3.0, 2)]
    assert answer["slots"] == [{"slot": 5, "lagSeconds": 3.0, "due": 3}]
    assert answer["unowned"] == [[2048, 4095]]


def test_a_worker_that_holds_nothing_yet_owns_nothing() -> None:
    assert shards_answer([report_of("a.1")], late())["unowned"] == [[0, 4095]]


def test_workers_without_zookeeper_each_own_the_whole_ring() -> None:
    workers = [holding("a.1", (0, 4095)), holding("b.1", (0, 4095))]
    answer = shards_answer(workers, late(SlotLag(handler="log", slot=5, due=1, lag_seconds=1.0)))
    assert [row["due"] for row in answer["items"]] == [1, 1]
    assert answer["unowned"] == []


def test_a_report_that_leaves_the_ring_is_cut() -> None:
    assert shards_answer([holding("a.1", (-5, 90_000))], late())["items"][0]["arcs"] == [[0, 4095]]


def test_arcs() -> None:
    assert arcs_of([]) == []
    assert arcs_of([3, 1, 2, 7, 9, 10]) == [Arc(lo=1, hi=3), Arc(lo=7, hi=7), Arc(lo=9, hi=10)]


def test_a_silent_worker_owns_nothing() -> None:
    held = (Slice(handlers=("log",), arcs=(Arc(lo=0, hi=4095),)),)
    for age_seconds, unowned in ((10.9, []), (11.1, [[0, 4095]])):
        report = report_of("a.1", slices=held, report_seconds=5.0, age_seconds=age_seconds)
        answer = shards_answer([report], late())
        assert (answer["unowned"], len(answer["items"])) == (unowned, 0 if unowned else 1)
