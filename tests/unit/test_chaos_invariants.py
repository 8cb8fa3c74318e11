"""The checker checks itself: a history that is in order passes, and one forged for each invariant fails by its name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadtest.chaos.history import Assigned, Call, Fault, History, Hit, Job, Run, Settings, Skip, Version
from loadtest.chaos.invariants import ACROSS, INVARIANTS, check
from loadtest.chaos.keeping import keep, read

T = 1_000_000.0
A, B = "w-a.1", "w-b.1"


def version(seq: int, at: float, state: str, generation: int, **more: object) -> Version:
    held = {"owner": A, "lease_until": at + 6} if state == "claimed" else {}
    row = {"change": "update", "next_run_at": T, "scheduled_for": T, **held, **more}
    return Version(seq=seq, at=at, job="j", state=state, generation=generation, **row)  # type: ignore[arg-type]


def run(generation: int, claimed_at: float, finished_at: float, outcome: str = "succeeded", **more: object) -> Run:
    row = {"attempt": 1, "scheduled_for": T, "cause": "schedule", "worker": A, **more}
    return Run(
        job="j",
        generation=generation,
        claimed_at=claimed_at,
        finished_at=finished_at,
        outcome=outcome,
        **row,  # type: ignore[arg-type]
    )


def hit(generation: int, begin: float, end: float | None, **more: object) -> Hit:
    row = {"scheduled_for": T, "attempt": 1, "worker": A, **more}
    return Hit(job="j", generation=generation, begin=begin, end=end, **row)  # type: ignore[arg-type]


def missed(first: float, last: float, count: int) -> Skip:
    return Skip(job="j", first=first, last=last, count=count, reason="missed", decided_at=last)


def in_order() -> History:
    """A job whose first worker is killed: claimed, lapsed, taken back, claimed by another, done."""
    return History(
        settings=Settings(),
        jobs={"j": Job(job="j", created_at=T - 10, run_at=T)},
        versions=[
            version(1, T - 10, "due", 0, change="insert"),
            version(2, T, "claimed", 1),
            version(3, T + 2, "claimed", 1, lease_until=T + 8, writer=f"{A}/renew"),
            version(4, T + 8.2, "due", 1, next_run_at=T + 8.2),
            version(5, T + 8.5, "claimed", 2, owner=B, attempt=2),
            version(6, T + 9, "done", 2),
        ],
        runs=[
            run(1, T, T + 8.2, "lost"),
            run(2, T + 8.5, T + 9, worker=B, attempt=2),
        ],
        hits=[hit(1, T + 0.01, None), hit(2, T + 8.51, T + 8.9, worker=B, attempt=2)],
        calls=[Call(kind="create", invoked=T - 10.1, ended=T - 9.9, outcome="ok", status=201, job="j", key="k")],
        assignments=[
            Assigned(at=T - 20, epoch=1, term=1, group="noop", arcs=((0, 2047, A), (2048, 4095, B))),
            Assigned(at=T + 4, epoch=2, term=1, group="noop", arcs=((0, 4095, B),)),
        ],
        faults=[Fault(name="N1", target=A, begin=T + 3, end=T + 5)],
        ended_at=T + 100,
    )


def with_versions(history: History, *changed: Version) -> History:
    by_seq = {one.seq: one for one in history.versions} | {one.seq: one for one in changed}
    return _with(history, versions=list(by_seq.values()))


def _with(history: History, **parts: object) -> History:
    fields = {field.name: getattr(history, field.name) for field in dataclasses.fields(history)}
    return History(**{**fields, **parts})


def recurring(**parts: object) -> History:
    """A job of four ticks, ten seconds apart: run, run, skipped because the second was still going on, run."""
    ticks = (T, T + 10, T + 20, T + 30)
    versions = [version(1, T - 5, "due", 0, change="insert")]
    for number, (tick, claimed, ended) in enumerate(
        ((T, T, T + 1), (T + 10, T + 10, T + 22), (T + 30, T + 30, T + 31))
    ):
        following = (T + 10, T + 30, T + 40)[number]
        versions += [
            version(2 * number + 2, claimed, "claimed", number + 1, scheduled_for=tick, lease_until=ended + 5),
            version(2 * number + 3, ended, "due", number + 1, scheduled_for=following, next_run_at=following),
        ]
    history = History(
        jobs={"j": Job(job="j", created_at=T - 5, ticks=ticks)},
        versions=versions,
        runs=[
            run(1, T, T + 1),
            run(2, T + 10, T + 22, scheduled_for=T + 10),
            run(3, T + 30, T + 31, scheduled_for=T + 30),
        ],
        skips=[Skip(job="j", first=T + 20, last=T + 20, count=1, reason="overlap", decided_at=T + 22)],
        hits=[
            hit(1, T, T + 1),
            hit(2, T + 10, T + 22, scheduled_for=T + 10),
            hit(3, T + 30, T + 31, scheduled_for=T + 30),
        ],
        ended_at=T + 100,
    )
    return _with(history, **parts)


FORGED: dict[str, Callable[[], History]] = {
    "I1": lambda: with_versions(in_order(), version(5, T + 8.5, "claimed", 1, owner=B, attempt=2)),
    "I2": lambda: with_versions(in_order(), version(4, T + 5, "due", 1, next_run_at=T + 5)),
    "I3": lambda: _with(
        in_order(),
        runs=[*in_order().runs[:1], run(2, T + 8.5, T + 9, worker=A, attempt=2)],
    ),
    "I4": lambda: _with(in_order(), hits=[hit(1, T + 0.01, T + 9.5), *in_order().hits[1:]], faults=[]),
    "I5": lambda: _with(in_order(), hits=[hit(1, T - 0.1, None), *in_order().hits[1:]]),
    "I6": lambda: _with(
        in_order(),
        versions=[*in_order().versions[:4], version(5, T + 8.3, "cancelled", 1), version(6, T + 8.5, "claimed", 2)],
        calls=[Call(kind="cancel", invoked=T + 8.2, ended=T + 8.4, outcome="ok", status=204, job="j")],
    ),
    "I7": lambda: _with(
        in_order(),
        calls=[*in_order().calls, Call(kind="create", invoked=T, ended=T, outcome="ok", status=201, job="x", key="k")],
    ),
    "I8": lambda: _with(in_order(), hits=in_order().hits[:1]),
    "I9": lambda: _with(
        in_order(), runs=[run(1, T, T + 8.2, "succeeded"), run(2, T + 8.5, T + 9, worker=B, attempt=2)]
    ),
    "I10": lambda: recurring(skips=[]),
    "I11": lambda: recurring(
        runs=[*recurring().runs[:2], run(3, T + 30, T + 31, scheduled_for=T + 32)],
        hits=[*recurring().hits[:2], hit(3, T + 32, T + 33, scheduled_for=T + 32)],
    ),
    "I12": lambda: _with(
        in_order(), assignments=[Assigned(at=T, epoch=1, term=1, group="g", arcs=((0, 99, A), (99, 4095, B)))]
    ),
    "I13": lambda: _with(
        in_order(),
        assignments=[
            Assigned(at=T, epoch=1, term=2, group="g", arcs=((0, 4095, A),)),
            Assigned(at=T + 1, epoch=2, term=1, group="g", arcs=((0, 4095, B),)),
        ],
    ),
    "I14": lambda: _with(in_order(), versions=[*in_order().versions, version(7, T + 10, "due", 2)]),
    "I15": lambda: with_versions(in_order(), version(4, T + 8.2, "due", 1, next_run_at=float("inf"))),
    "I16": lambda: _with(in_order(), versions=[*in_order().versions, version(7, T + 10, "done", 2, change="insert")]),
    "I17": lambda: _with(in_order(), faults=[*in_order().faults, Fault(name="N5", target="*", begin=T + 4, end=T + 9)]),
}


@pytest.mark.parametrize("history", [in_order, recurring])
def test_what_is_in_order_passes(history: Callable[[], History]) -> None:
    assert check(history()) == []


def test_there_is_a_forgery_for_each() -> None:
    assert FORGED.keys() == INVARIANTS.keys() - ACROSS  # those are forged in test_chaos_branches


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_history_fails_by_its_name(name: str) -> None:
    assert name in {violation.invariant for violation in check(FORGED[name]())}


@pytest.mark.parametrize(
    ("name", "history"),
    [
        ("I2", with_versions(in_order(), version(4, T + 4, "claimed", 2, owner=B))),
        ("I3", _with(in_order(), versions=in_order().versions[:5])),
        ("I4", _with(in_order(), hits=[hit(1, T + 0.01, T + 9.5), *in_order().hits[1:]],
                     versions=[replace(one, at=T + 9) if one.seq == 5 else one for one in in_order().versions[:3]]
                     + [version(5, T + 7, "claimed", 2, owner=B)])),
        ("I8", _with(in_order(), hits=[*in_order().hits, hit(2, T + 8.95, T + 9, worker=B, attempt=2)])),
        ("I4", _with(in_order(), hits=[hit(1, T + 0.01, T + 9.5), *in_order().hits[1:]])),
        ("I6", _with(in_order(), calls=[Call(kind="cancel", invoked=T, ended=T, outcome="ok", status=204, job="j")])),
        ("I3", with_versions(in_order(), version(3, T + 2, "claimed", 1, lease_until=T + 8, writer=f"{B}/renew"))),
        ("I3", with_versions(in_order(), version(2, T, "claimed", 1, writer=B))),
        ("I7", _with(in_order(), calls=[Call(kind="create", invoked=T, ended=T, outcome="fail", status=422, job="j")])),
        ("I10", recurring(skips=[missed(T + 20, T + 25, 2)])),
        ("I10", recurring(skips=[missed(T + 10, T + 20, 2)])),
        ("I10", _with(in_order(), runs=[], hits=[], versions=in_order().versions[:1])),
        ("I11", recurring(runs=[*recurring().runs, run(4, T + 40, T + 41, scheduled_for=T + 30)])),
    ],
)  # fmt: skip
def test_other_ways_to_break_them(name: str, history: History) -> None:
    assert name in {violation.invariant for violation in check(history)}


def test_a_run_that_goes_on_past_its_lease_in_a_paused_worker_is_no_violation() -> None:
    history = _with(
        in_order(),
        hits=[hit(1, T + 0.01, T + 9.5), *in_order().hits[1:]],
        faults=[Fault(name="N2", target=A, begin=T + 3, end=T + 9.6)],
    )
    assert check(history) == []


def test_a_late_job_may_be_cancelled_before_it_begins() -> None:
    cancel = Call(kind="cancel", invoked=T + 0.3, ended=T + 0.5, outcome="ok", status=204, job="j")
    versions = [in_order().versions[0], version(2, T + 0.4, "cancelled", 0)]
    assert check(_with(in_order(), versions=versions, runs=[], hits=[], calls=[cancel])) == []


@pytest.mark.parametrize("history", [in_order, recurring])
def test_a_history_that_was_kept_is_the_same(history: Callable[[], History], tmp_path: Path) -> None:
    keep(history(), tmp_path / "history.json.gz")
    again = read(tmp_path / "history.json.gz")
    for field in dataclasses.fields(History):
        was, now = getattr(history(), field.name), getattr(again, field.name)
        assert now == (list(was) if isinstance(now, list) else was), field.name
