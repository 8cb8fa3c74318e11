"""Whether anything is not running that should: the one sentence, its reason, its end. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from ringcron.models import Arc, JobState, Slice, WorkerReport
from ringcron.store.alerting import SHOWN, Breach
from ringcron.store.lag import Lag, SlotLag
from ringcron.store.looking import Epoch, GoneWorker, Transit
from ringcron.store.snapshot import Claims, Pace, Snapshot, Waiting
from ringcron_api.dashboard.alarms import Overlooked, alarms_of
from ringcron_api.dashboard.verdict import Level, Verdict, verdict_of
from ringcron_api.shards import ring_of
from tests.support.spikes import spike_ahead
from tests.support.values import report_of

NOW = datetime(2027, 1, 1, 12, 3, 30, tzinfo=UTC)


def worker(worker_id: str, lo: int, hi: int, **columns: Any) -> WorkerReport:
    held = Slice(handlers=("log",), arcs=(Arc(lo=lo, hi=hi),))
    return report_of(worker_id, slices=(held,), **columns)


def late(slot: int, seconds: float, due: int = 1) -> SlotLag:
    return SlotLag(handler="log", slot=slot, due=due, lag_seconds=seconds)


def verdict(
    *workers: WorkerReport,
    lag: tuple[SlotLag, ...] = (),
    gone: tuple[GoneWorker, ...] = (),
    epochs: tuple[Epoch, ...] = (),
    ahead: dict[int, int] | None = None,
    foreseen: bool = True,
    breaches: tuple[Breach, ...] = (),
    overlooked: tuple[Overlooked, ...] = (),
    **columns: Any,
) -> Verdict:
    whole = Lag(taken_at=NOW, slots=lag)
    busy = Pace(until=NOW, due=(0,) * 60, started=(4,) * 60)
    values = {"taken_at": NOW, "age_seconds": 0.0, "lag": whole, "pace": busy} | columns
    snapshot = Snapshot(**values)
    capacity = sum(one.capacity for one in workers if not one.silent)
    return verdict_of(
        now=NOW,
        workers=workers,
        gone=gone,
        epochs=epochs,
        snapshot=snapshot,
        ring=ring_of(workers, whole),
        spike=spike_ahead(ahead or {}, start=NOW, capacity=capacity) if foreseen else None,
        alarms=alarms_of(breaches),
        overlooked=overlooked,
    )


def breach(number: int, **columns: Any) -> Breach:
    values: dict[str, Any] = {
        "job_id": UUID(int=number),
        "late_since": None,
        "no_success_since": None,
        "told_late": None,
        "told_no_success": None,
        "key": None,
        "name": f"job-{number}",
        "handler": "log",
        "state": JobState.DUE,
        "after_late_seconds": 30.0,
        "if_no_success_seconds": 86400.0,
    }
    return Breach(**(values | columns))


def test_all_is_well() -> None:
    said = verdict(worker("a.1", 0, 4095), due_soon=7, lag=(late(5, 0.2),))
    assert (said.level, said.others) == (Level.GOOD, ())
    assert said.first.sentence == "Everything that is due is running."
    assert said.first.reason == "No due job has waited longer than 0.2 s."
    assert said.first.over == "7 jobs will be due within the next minute."


def test_a_spike_to_come_is_told() -> None:
    said = verdict(worker("a.1", 0, 4095), ahead={90: 100})
    assert "At 12:05:00 UTC 100 jobs will be due; the last will start about 50 s late." in said.first.over


def test_what_is_not_foreseen_is_said() -> None:
    said = verdict(worker("a.1", 0, 4095), foreseen=False)
    assert said.level is Level.GOOD
    assert said.first.over.endswith("What comes then is not known: the forecast could not be made.")
    said = verdict(worker("a.1", 0, 4095), foreseen=False, lag=(late(1, 34, 100),))
    assert said.first.over == "When it will be over is not known: the forecast could not be made."


def test_an_alert_of_a_job_is_told_with_the_oldest_first() -> None:
    begun = NOW - timedelta(minutes=5)
    told = breach(3, told_late=begun)  # its end waits to be told: it is no breach any more
    said = verdict(worker("a.1", 0, 4095), breaches=(breach(1, late_since=begun), told))
    assert (said.level, said.first.link, said.others) == (Level.BAD, "/dashboard/alerts", ())
    assert said.first.sentence == (
        "An alert of a job is breached since 2027-01-01 11:58:30 UTC: job-1 has not started 30 s after it was due; "
        "it is due."
    )
    both = breach(2, late_since=NOW, no_success_since=NOW - timedelta(days=2), state=JobState.PAUSED, name=None)
    said = verdict(worker("a.1", 0, 4095), breaches=(breach(1, late_since=begun), both))
    assert said.first.sentence == (
        "3 alerts of jobs are breached, the oldest since 2026-12-30 12:03:30 UTC: "
        f"{both.job_id} has had no success for 1 d; it is paused."
    )
    many = tuple(breach(number, late_since=NOW) for number in range(SHOWN))
    assert verdict(worker("a.1", 0, 4095), breaches=many).first.sentence.startswith("500+ alerts of jobs are breached")
    assert verdict(breaches=many, lag=(late(1, 92),)).first.sentence.startswith("Nothing runs")  # the cause comes first


def test_jobs_that_nobody_holds() -> None:
    found = (
        Overlooked(handler="log", jobs=2, since=NOW - timedelta(minutes=6), oldest_id=UUID(int=1)),
        Overlooked(handler="billing", jobs=10_000, since=NOW - timedelta(hours=1), oldest_id=UUID(int=2)),
    )
    said = verdict(worker("a.1", 0, 4095), overlooked=found)
    assert (said.level, said.first.link) == (Level.BAD, f"/dashboard/jobs/{UUID(int=2)}")
    assert said.first.sentence == (
        "10,002+ enabled jobs of log, billing are long overdue and nobody holds them, the oldest since "
        "2027-01-01 11:03:30 UTC."
    )


def test_nobody_is_there() -> None:
    assert verdict().first.sentence == "No worker is running; nothing is due."
    said = verdict(lag=(late(1, 92, 3),))
    assert said.level is Level.BAD
    assert said.first.sentence == (
        "Nothing runs: 3 due jobs wait, the oldest for 1 min 32 s, and no worker is running."
    )


def test_slots_without_an_owner_whose_worker_went_silent() -> None:
    silent = worker("c.1", 590, 599, age_seconds=20.0)
    others = (worker("a.1", 0, 589), worker("b.1", 600, 4095))
    said = verdict(*others, silent, lag=(late(595, 92),))
    assert said.level is Level.BAD
    assert said.first.sentence == (
        "The oldest due job waits 1 min 32 s: slots 590–599 have no owner since 12:03:10, 1 job due."
    )
    assert said.first.reason == "c.1 went silent 20 s ago."
    quiet = verdict(*others, silent)
    assert (quiet.level, quiet.first.sentence) == (
        Level.WARN,
        "Slots 590–599 have no owner since 12:03:10; nothing waits there.",
    )


def test_slots_without_an_owner_whose_worker_is_gone_or_that_move() -> None:
    left = GoneWorker(worker_id="c.1", name="c", seen_at=NOW - timedelta(seconds=25), arcs=())
    said = verdict(worker("a.1", 0, 99), gone=(left,))
    assert "since 12:03:05" in said.first.sentence
    assert said.first.reason == "c.1 stopped reporting."
    moving = Epoch(
        epoch=2, at=NOW, cause="1 joined (b.1)", leader="c", members=2, slots_moved=9, slots_unowned=0,
        in_transit=(Transit(arc=Arc(lo=100, hi=4095), giver="a.1", taker="b.1"),),
    )  # fmt: skip
    said = verdict(worker("a.1", 0, 99), epochs=(moving,))
    assert said.first.reason == "They are on their way from one worker to another."


def test_a_handler_that_nobody_has() -> None:
    said = verdict(worker("a.1", 0, 4095), waiting=(Waiting(handler="billing", due=1000, lag_seconds=61),))
    assert said.first.sentence == (
        "1,000+ due jobs of the handler billing wait, the oldest for 1 min 1 s: no worker has that handler."
    )


def test_more_is_due_than_the_pool_can_run() -> None:
    claims = {"a.1": Claims(running=10, lapses_in_seconds=9)}
    said = verdict(worker("a.1", 0, 4095, running=10), lag=(late(1, 34, 100),), claims=claims)
    assert said.first.sentence == "100 due jobs wait, the oldest for 34 s."
    assert said.first.reason == "All workers are at their limit: 10 of 10 places are busy."
    assert said.first.over == "At 2.0 starts a second it is over in about 50 s, at 12:04:20 UTC."


def test_one_slice_lags_alone() -> None:
    workers = (worker("a.1", 0, 2047, running=10), worker("b.1", 2048, 4095))
    said = verdict(*workers, lag=(late(1, 40, 9), late(3000, 0.4)))
    assert said.first.sentence == "The slice of a.1 lags by 40 s, the others by 0.4 s: 9 jobs due there."
    assert said.first.reason == "It runs 10 of 10."


def test_the_gravest_comes_first_and_nothing_is_left_out() -> None:
    workers = (worker("a.1", 0, 2047), worker("b.1", 3000, 4095, draining=True))
    said = verdict(*workers, lag=(late(1, 40, 9),), dead=10_000, waiting=(Waiting(handler="x", due=1, lag_seconds=1),))
    assert [finding.level for finding in (said.first, *said.others)] == [Level.BAD, Level.BAD, Level.WARN, Level.WARN]
    assert said.others[-1].sentence == "10,000+ dead jobs wait for a person."


@pytest.mark.parametrize("draining", [True, False])
def test_every_worker_is_draining(draining: bool) -> None:
    said = verdict(worker("a.1", 0, 4095, draining=True), worker("b.1", 0, 4095, draining=draining))
    assert ("Every worker is draining" in said.first.sentence) is draining
