"""Lag by slot and by slice."""

from __future__ import annotations

from ringcron.models import Arc, Slice, WorkerReport
from ringcron.store.lag import SlotLag
from ringcron_coordinator.lag import lag_of_slices, lag_of_slots


def row(handler: str, slot: int, lag: float, due: int = 1) -> SlotLag:
    return SlotLag(handler=handler, slot=slot, due=due, lag_seconds=lag)


def worker(name: str, *slices: Slice) -> WorkerReport:
    return WorkerReport(
        worker_id=f"{name}.0",
        name=name,
        capacity=1,
        running=0,
        handlers=("log",),
        version="1",
        tzdata="2026f",
        epoch=1,
        draining=False,
        slices=slices,
    )


DUE = [row("log", 3, 1.5), row("http", 3, 4.0), row("log", 70, 2.0, due=5), row("gone", 9, 60.0, due=7)]


def test_a_slot_lags_as_its_oldest_job() -> None:
    assert lag_of_slots(DUE) == {"3": 4.0, "70": 2.0, "9": 60.0}
    assert lag_of_slots([]) == {}


def test_a_slice_lags_as_its_oldest_job_that_its_ring_can_run() -> None:
    first = worker("a", Slice(handlers=("log",), arcs=(Arc(lo=0, hi=9), Arc(lo=60, hi=69))))
    second = worker(
        "b", Slice(handlers=("log",), arcs=(Arc(lo=70, hi=80),)), Slice(handlers=("http",), arcs=(Arc(lo=0, hi=9),))
    )
    assert lag_of_slices(DUE, [first, second, worker("idle")]) == {"a": 1.5, "b": 4.0}
