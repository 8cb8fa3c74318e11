"""A history that forked: each server's record is judged by itself, and what was lost is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadtest.chaos.branches import losses
from loadtest.chaos.history import Branch, Call, Fault, History, Hit, Job, Run, Version
from loadtest.chaos.invariants import ACROSS, check
from loadtest.chaos.keeping import keep, read
from loadtest.chaos.telling import told

T = 1_000_000.0
KILLED = T + 3
A, B = "w-a.1", "w-b.1"
SECOND_TIMELINE = 1 << 32


def version(seq: int, at: float, state: str, generation: int, job: str = "j", **more: object) -> Version:
    held = {"owner": A, "lease_until": at + 6} if state == "claimed" else {}
    row = {"change": "update", "next_run_at": T, "scheduled_for": T, **held, **more}
    return Version(seq=seq, at=at, job=job, state=state, generation=generation, **row)  # type: ignore[arg-type]


def run(generation: int, claimed_at: float, finished_at: float, worker: str = A) -> Run:
    return Run(
        job="j",
        generation=generation,
        claimed_at=claimed_at,
        finished_at=finished_at,
        attempt=1,
        scheduled_for=T,
        cause="schedule",
        worker=worker,
        outcome="succeeded",
    )


def hit(generation: int, begin: float, end: float | None, worker: str = A) -> Hit:
    return Hit(job="j", generation=generation, scheduled_for=T, attempt=1, worker=worker, begin=begin, end=end)


def created(job: str, at: float) -> Call:
    return Call(kind="create", invoked=at - 0.1, ended=at + 0.1, outcome="ok", status=201, job=job, key=f"key of {job}")


INSERTED = version(1, T - 10, "due", 0, change="insert")
LOST = [
    version(2, T, "claimed", 1),
    version(3, T + 1, "due", 0, "lost", change="insert"),
    version(4, T + 2, "done", 1),
]
AFTER = [
    version(2, T + 4, "claimed", SECOND_TIMELINE + 1, owner=B),
    version(3, T + 5, "done", SECOND_TIMELINE + 1),
]


def failed_over(
    *,
    lost: Sequence[Version] = LOST,
    lost_runs: Sequence[Run] = (run(1, T, T + 2),),
    after: Sequence[Version] = AFTER,
    hits: Sequence[Hit] = (hit(1, T, T + 1.9), hit(SECOND_TIMELINE + 1, T + 4, T + 4.9, B)),
    calls: Sequence[Call] = (created("j", T - 10), created("lost", T + 1)),
) -> History:
    """One job is created, and the standby is cut off. It is claimed and done, another is created; then the primary is
    killed. On the standby the first is claimed and done again, and of the second nobody knows."""
    jobs = {"j": Job(job="j", created_at=T - 10, run_at=T)}
    return History(
        jobs=jobs,
        versions=[INSERTED, *after],
        runs=[run(one.generation, one.at, one.at + 1, str(one.owner)) for one in after if one.state == "claimed"],
        abandoned=[Branch(until=KILLED, jobs=jobs, versions=[INSERTED, *lost], runs=lost_runs)],
        hits=hits,
        calls=calls,
        faults=[Fault(name="N8-async", target="*", begin=KILLED, end=KILLED + 1)],
        ended_at=T + 100,
    )


def violated(history: History) -> set[str]:
    return {violation.invariant for violation in check(history)}


def test_what_a_failover_loses_is_counted_and_violates_nothing() -> None:
    history = failed_over()
    assert check(history) == []
    gone = losses(history)
    assert gone.claims == {("j", 1)}
    assert (len(gone.versions), gone.creates, gone.ran, gone.again, gone.runs) == (3, 1, 1, 1, 1)


def test_where_nothing_was_lost_nothing_is_counted() -> None:
    history = replace_abandoned(failed_over(), versions=[INSERTED], runs=[])
    assert not losses(history).versions


FORGED: dict[str, Callable[[], History]] = {
    "I18": lambda: failed_over(after=[version(2, T + 4, "claimed", 1, owner=B), version(3, T + 5, "done", 1)]),
    "I19": lambda: failed_over(
        lost=LOST[:2], lost_runs=(), hits=[hit(1, T, KILLED + 1 + 6.5), hit(SECOND_TIMELINE + 1, T + 4, T + 4.9, B)]
    ),
}


def test_there_is_a_forgery_for_each() -> None:
    assert FORGED.keys() == ACROSS


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_history_fails_by_its_name(name: str) -> None:
    assert name in violated(FORGED[name]())


def test_the_same_owner_may_not_have_a_generation_twice_either() -> None:
    assert "I18" in violated(failed_over(after=[version(2, T + 4, "claimed", 1), version(3, T + 5, "done", 1)]))


def test_a_run_under_a_lost_claim_may_go_on_until_its_worker_can_know() -> None:
    goes_on = hit(1, T, KILLED + 1 + 5.5)
    history = failed_over(lost=LOST[:2], lost_runs=(), hits=[goes_on, hit(SECOND_TIMELINE + 1, T + 4, T + 4.9, B)])
    assert check(history) == []


@pytest.mark.parametrize(
    ("name", "history"),
    [
        # On the server that was killed: a generation that falls, a run that nobody claimed, a create that made nothing.
        ("I1", failed_over(lost=[*LOST, version(5, T + 2.5, "done", 0)])),
        ("I8", failed_over(hits=[hit(7, T, T + 1), hit(SECOND_TIMELINE + 1, T + 4, T + 4.9, B)])),
        ("I8", failed_over(hits=[hit(SECOND_TIMELINE + 1, T + 4, T + 4.9, B)])),
        ("I7", failed_over(calls=[created("nowhere", T + 1)])),
        # On the one that is left: the sink knows nothing, a create after the failover made nothing.
        ("I8", failed_over(hits=[hit(1, T, T + 1.9)])),
        ("I7", failed_over(calls=[created("nowhere", T + 5)])),
    ],
)
def test_each_server_is_judged_by_itself(name: str, history: History) -> None:
    assert name in violated(history)


def test_what_was_lost_is_told_as_lost() -> None:
    history = FORGED["I18"]()
    violation = next(one for one in check(history) if one.invariant == "I18")
    assert "LOST with its server" in told(history, violation)


def test_a_forked_history_that_was_kept_is_judged_alike(tmp_path: Path) -> None:
    for history in (failed_over(), FORGED["I18"]()):
        keep(history, tmp_path / "history.json.gz")
        assert violated(read(tmp_path / "history.json.gz")) == violated(history)


def replace_abandoned(history: History, **parts: object) -> History:
    (branch,) = history.abandoned
    return History(
        versions=history.versions,
        runs=history.runs,
        abandoned=[replace(branch, **parts)],  # type: ignore[arg-type]
        ended_at=history.ended_at,
    )
