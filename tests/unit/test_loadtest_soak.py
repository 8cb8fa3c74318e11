"""The soak's arithmetic: slopes and their verdicts, lines of bounded length, judging piece by piece."""

from __future__ import annotations

import random
from itertools import pairwise
from uuid import UUID

import pytest

from loadtest.outcome import Outcome
from loadtest.runs import RunRow, Started
from loadtest.soak.bounds import bounds_of, judge
from loadtest.soak.ledger import Ledger
from loadtest.soak.lines import MOST, Line, Lines
from loadtest.soak.slopes import Slope, slope_of, windows_of
from loadtest.soak.telling import tell_slopes

T = 1_790_000_000.0
JOB = UUID(int=7)
HALF_HOUR = [5.0 * step for step in range(360)]


def started(at: float = T + 0.1, due: float = T) -> Started:
    return Started(JOB, due, at)


def ran(outcome: str = "succeeded", *, generation: int = 1, due: float = T) -> RunRow:
    return RunRow(JOB, generation, generation, due, "w-1.00000000", due + 0.05, due + 0.1, due + 0.2, outcome)


def saw(at: float) -> float:
    """What autovacuum makes of dead rows: a tooth a minute."""
    return 24_000 * (at % 61) / 61


def ledger(*late: RunRow) -> Ledger:
    return Ledger(lambda ids, since: [run for run in late if run.job_id in ids and run.claimed_at >= since])


def test_a_straight_line_has_its_slope() -> None:
    slope = slope_of([(at, 100 + 12 * at / 3600) for at in HALF_HOUR])
    assert slope is not None
    assert slope.per_hour == pytest.approx(12)
    assert slope.low == pytest.approx(12)
    assert slope.high == pytest.approx(12)


def test_the_range_holds_the_slope_under_noise_nineteen_times_in_twenty() -> None:
    held = 0
    for seed in range(40):
        noise = random.Random(seed)
        slope = slope_of([(at, 50 + 3 * at / 3600 + noise.gauss(0, 1)) for at in HALF_HOUR])
        assert slope is not None
        held += slope.low <= 3 <= slope.high
    assert held >= 34


def test_a_spike_bends_nothing() -> None:
    level = slope_of([(at, 80.0 if at != 1700 else 8000.0) for at in HALF_HOUR])
    assert level is not None
    assert level.per_hour == pytest.approx(0)


def test_the_teeth_of_a_saw_are_about_zero_and_a_rising_saw_is_not() -> None:
    bound = 36_000
    level = slope_of([(at, saw(at)) for at in HALF_HOUR])
    rising = slope_of([(at, saw(at) + 90_000 * at / 3600) for at in HALF_HOUR])
    assert level is not None
    assert rising is not None
    assert level.judged(bound) == "about zero"
    assert rising.judged(bound) == "grows"


def test_only_what_is_sure_is_said() -> None:
    def slope(low: float, high: float, seconds: float = 1350) -> Slope:
        return Slope(per_hour=(low + high) / 2, low=low, high=high, seconds=seconds)

    assert slope(-9, 4).judged(4) == "about zero"
    assert slope(-9, -5).judged(4) == "about zero"
    assert slope(3, 6).judged(4) == "undecided"
    assert slope(5, 6).judged(4) == "grows"
    assert slope(5, 6, seconds=180).judged(4) == "undecided"
    assert slope_of([(0.0, 1.0), (5.0, 1.0), (12.0, 1.0)]) is None


def test_windows_are_about_thirty_and_ten_seconds_at_least() -> None:
    assert len(windows_of(HALF_HOUR_POINTS)) == 30
    assert len(windows_of([(at, 1.0) for at in HALF_HOUR if at < 100])) == 10
    assert windows_of([]) == []


HALF_HOUR_POINTS = [(at, 1.0) for at in HALF_HOUR]


def test_a_line_never_holds_more_than_so_many_points() -> None:
    mean, most = Line(), Line(greatest=True)
    for step in range(17_280):
        for line in (mean, most):
            line.add(5.0 * step, float(step % 2) + (99 if step == 5000 else 0))
        if step % 100 == 0:
            assert len(mean.points()) < MOST
    assert max(value for _, value in mean.points()) < 10
    assert max(value for _, value in most.points()) == 99
    instants = [at for at, _ in mean.points()]
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    assert min(gaps) == max(gaps) > 0
    assert mean.points(since=60_000)[0][0] >= 60_000


def test_what_ran_once_is_counted_and_forgotten() -> None:
    book = ledger()
    book.expect(JOB, T)
    assert book.started(started(), 11) is None
    book.ran(ran())
    book.close(T)
    assert book.open == 1  # its time is not over
    book.close(T + 60)
    assert book.open == 0
    assert book.problems == []
    assert (book.counts["expected"], book.counts["succeeded"]) == (1, 1)


def test_a_run_that_began_again_after_a_loss_is_none_and_names_whom_it_was_lost_by() -> None:
    book = ledger()
    book.expect(JOB, T)
    book.started(started(), 11)
    assert book.started(started(T + 16), 12) == 11
    book.ran(ran("lost"))
    book.ran(ran(generation=2))
    book.close(T + 60)
    assert book.problems == []
    assert book.counts["repeatedAfterLoss"] == 1


def test_a_late_row_is_looked_for_before_anything_is_said() -> None:
    book = ledger(ran())
    book.expect(JOB, T)
    book.started(started(), 11)
    book.close(T + 60)
    assert book.problems == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [("missed", "never completed"), ("twice", "started twice"), ("early", "started early"), ("unasked", "asked for")],
)
def test_each_fault_is_told(fault: str, said: str) -> None:
    book = ledger(*([] if fault == "missed" else [ran()]))
    if fault != "unasked":
        book.expect(JOB, T)
    book.started(started(T - 0.01 if fault == "early" else T + 0.1), 11)
    if fault == "twice":
        book.started(started(T + 1), 12)
    book.close(T + 60)
    assert [problem for problem in book.problems if said in problem] != []


def test_what_comes_after_it_was_judged_is_a_fault() -> None:
    book = ledger()
    book.expect(JOB, T)
    book.started(started(), 11)
    book.ran(ran())
    book.close(T + 60)
    book.started(started(T + 70), 12)
    book.ran(ran(generation=2))
    book.ran(ran("lost", generation=3))
    assert len(book.problems) == 2


def test_a_leak_is_a_fault_of_the_run_and_a_level_line_is_none() -> None:
    lines = Lines()
    for at in HALF_HOUR:
        lines.add(at, {"allocated by API": 60 + 50 * at / 3600, "connections": 23.0, "dead rows": saw(at)})
    bounds = bounds_of(due_per_second=200, created_per_second=140, workers=4, kills_per_hour=120)
    judged = judge(bounds, lines, since=300)
    verdicts = {each.bound.name: each.verdict for each in judged}
    assert verdicts["memory of the API"] == "grows"
    assert verdicts["connections"] == "about zero"
    assert verdicts["dead rows"] == "about zero"
    assert verdicts["memory of PostgreSQL"] == "undecided"
    outcome = Outcome(command="soak", title="", question="", arguments={})
    tell_slopes(outcome, judged, warm_up=300)
    assert len(outcome.problems) == 1
    assert outcome.problems[0].startswith("memory of the API grows by 50")
