"""The load test's judge: it must find what it is told to look for, and nothing else."""

from __future__ import annotations

from uuid import UUID

from loadtest.checking import Verdict, check, occurrence
from loadtest.runs import RunRow, Started

T = 1_790_000_000.25
JOBS = [UUID(int=number) for number in range(1, 6)]
DUE_AT = {occurrence(job, T): T for job in JOBS}


def started(job: UUID, at: float = T + 0.1) -> Started:
    return Started(job, T, at)


def run(job: UUID, outcome: str = "succeeded", *, generation: int = 1, claimed_at: float = T + 0.05) -> RunRow:
    return RunRow(job, generation, generation, T, "w-1.00000000", claimed_at, T + 0.1, T + 0.2, outcome)


STARTS = [started(job) for job in JOBS]
RUNS = [run(job) for job in JOBS]


def found(verdict: Verdict) -> set[str]:
    """The kinds of faults, each of them at the last job alone."""
    kinds = {"duplicates": verdict.duplicates, "early": verdict.early, "missed": verdict.missed}
    assert all(jobs in ((), (occurrence(JOBS[-1], T),)) for jobs in kinds.values())
    return {kind for kind, jobs in kinds.items() if jobs}


def test_each_once_is_clean() -> None:
    verdict = check(DUE_AT, STARTS, RUNS)
    assert verdict.clean
    assert verdict.problems() == []
    assert (verdict.expected, verdict.started, verdict.succeeded) == (5, 5, 5)


def test_a_second_start_is_a_duplicate() -> None:
    assert found(check(DUE_AT, [*STARTS, started(JOBS[-1], T + 1)], RUNS)) == {"duplicates"}


def test_a_second_start_after_a_loss_is_counted_apart() -> None:
    runs = [*RUNS[:-1], run(JOBS[-1], "lost"), run(JOBS[-1], generation=2)]
    verdict = check(DUE_AT, [*STARTS, started(JOBS[-1], T + 1)], runs)
    assert found(verdict) == set()
    assert verdict.repeated == 1


def test_one_loss_explains_one_more_start_only() -> None:
    runs = [*RUNS[:-1], run(JOBS[-1], "lost"), run(JOBS[-1], generation=2)]
    starts = [*STARTS, started(JOBS[-1], T + 1), started(JOBS[-1], T + 2)]
    assert found(check(DUE_AT, starts, runs)) == {"duplicates"}


def test_two_successes_are_duplicates_whoever_wrote_starts_down() -> None:
    assert found(check(DUE_AT, STARTS, [*RUNS, run(JOBS[-1], generation=2)])) == {"duplicates"}


def test_a_start_before_its_instant_is_early_beyond_what_clocks_differ() -> None:
    assert found(check(DUE_AT, [*STARTS[:-1], started(JOBS[-1], T - 0.002)], RUNS)) == {"early"}
    assert found(check(DUE_AT, [*STARTS[:-1], started(JOBS[-1], T - 0.0005)], RUNS)) == set()


def test_a_claim_before_its_instant_is_early_at_once() -> None:
    assert found(check(DUE_AT, STARTS, [*RUNS[:-1], run(JOBS[-1], claimed_at=T - 0.000_01)])) == {"early"}


def test_what_did_not_start_or_did_not_succeed_is_missed() -> None:
    assert found(check(DUE_AT, STARTS[:-1], RUNS[:-1])) == {"missed"}
    assert found(check(DUE_AT, STARTS, RUNS[:-1])) == {"missed"}
    assert found(check(DUE_AT, STARTS[:-1], RUNS)) == {"missed"}
    assert found(check(DUE_AT, STARTS, [*RUNS[:-1], run(JOBS[-1], "failed")])) == {"missed"}


def test_jobs_of_others_do_not_count() -> None:
    other = UUID(int=99)
    assert check(DUE_AT, [*STARTS, started(other), started(other)], [*RUNS, run(other)]).clean


def test_ticks_of_one_job_are_judged_apart() -> None:
    later = occurrence(JOBS[0], T + 60)
    due_at = {**DUE_AT, later: T + 60}
    assert check(due_at, STARTS, RUNS).missed == (later,)
    starts = [*STARTS, Started(JOBS[0], T + 60, T + 60.1)]
    runs = [*RUNS, RUNS[0]._replace(lease_generation=2, scheduled_for=T + 60, claimed_at=T + 60.05)]
    assert check(due_at, starts, runs).clean


def test_a_sentence_names_how_many_and_which() -> None:
    (sentence,) = check(DUE_AT, STARTS[:3], RUNS[:3]).problems()
    assert sentence.startswith("2 of 5 never completed: ")
    assert str(JOBS[3]) in sentence
