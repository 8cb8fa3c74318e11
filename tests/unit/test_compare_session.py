"""A comparison is interleaved, goes on without who is absent or breaks, and tells what happened."""

from __future__ import annotations

from collections.abc import Mapping

from loadtest.compare.contestants import Absent, Broken, Contestant, Crew, Kind, Site
from loadtest.compare.cpu import Quiet
from loadtest.compare.measuring import Measured, burst_figures
from loadtest.compare.session import Session
from loadtest.compare.started import Counts, Started, judge
from loadtest.compare.telling import tell
from loadtest.compare.works import Work, work_named
from loadtest.peers.protocol import Order
from loadtest.progress import Progress

CLEAN = Counts(jobs=10, started=10, recorded=10, missed=0, twice=0, early=0)
WORK = work_named("spike")
QUIET = Quiet(most=1.0, patience_seconds=0.0, look_seconds=0.0)


class Forged:
    """A contestant that only exists, or does not."""

    queries = "forged"
    edition = "1"

    def __init__(self, name: str, kind: Kind, absent: str | None = None) -> None:
        self.name = name
        self.kind = kind
        self._absent = absent

    def install(self) -> Mapping[str, str]:
        if self._absent is not None:
            raise Absent(self._absent)
        return {self.name: "1"}

    def build(self, database_url: str) -> None:
        raise NotImplementedError

    def start(self, site: Site, *, workers: int, tasks: bool) -> Crew:
        raise NotImplementedError


CONTESTANTS: list[Contestant] = [
    Forged("ringcron", "ringcron"),
    Forged("limit", "limit"),
    Forged("snake", "python"),
    Forged("crab", "node", absent="no such package"),
]
FIGURES = {"ringcron": 0.3, "limit": 0.1, "snake": 0.6}


def session(broken: frozenset[tuple[str, int]] = frozenset()) -> tuple[Session, list[str]]:
    """One that has not run; who ran, in order. `broken`: whose runs break, counted from 1."""
    ran: list[str] = []

    def run_once(_: Work, contestant: Contestant, __: int) -> Measured:
        ran.append(contestant.name)
        if (contestant.name, ran.count(contestant.name)) in broken:
            raise Broken("it fell over")
        figure = FIGURES[contestant.name]
        return Measured(figures={"last_start": figure, "all_complete": figure, "median_start": figure}, counts=CLEAN)

    made = Session(CONTESTANTS, Progress(silent=True), prepare=lambda _, __: None, run_once=run_once, quiet=QUIET)
    made.install()
    return made, ran


def told(made: Session) -> tuple[str, list[str], list[str]]:
    """All cells of the tables, the notes, the problems."""
    outcome = tell([WORK], CONTESTANTS, made.results, command="compare", arguments={})
    cells = "\n".join(" | ".join(row) for table in outcome.tables for row in table.rows)
    return cells, outcome.notes, outcome.problems


def test_rounds_are_interleaved() -> None:
    made, ran = session()
    made.run(WORK, rounds=2, ballast=None)
    assert ran == ["ringcron", "limit", "snake"] * 2
    assert {(run["contestant"], run["round"]) for run in made.results.runs} == {
        (name, number) for name in FIGURES for number in (1, 2)
    }


def test_an_absent_peer_is_reported_absent() -> None:
    made, ran = session()
    made.run(WORK, rounds=1, ballast=None)
    cells, notes, problems = told(made)
    assert "crab" not in ran
    assert "crab | – | – |  | absent: no such package" in cells
    assert "absent, so neither beaten nor unbeaten: crab (no such package)" in notes
    assert problems == []


def test_ratios_and_goals_are_told_with_ranges() -> None:
    made, _ = session()
    made.run(WORK, rounds=3, ballast=None)
    cells, _, _ = told(made)
    assert "limit | 0.100 (0.100–0.100) | 3.00 (3.00–3.00) | 0/0/0 | " in cells
    assert "limit | last start after T | ≤ 1.5 | 3.00 (3.00–3.00) | not reached | " in cells
    assert "snake | last start after T | ≤ 1 | 0.500 (0.500–0.500) | reached | " in cells


def test_a_run_of_ringcron_that_breaks_fails_the_comparison_and_a_peers_does_not() -> None:
    made, ran = session(frozenset({("ringcron", 1), ("snake", 1)}))
    made.run(WORK, rounds=2, ballast=None)
    _, notes, problems = told(made)
    assert len(ran) == 6
    assert problems == ["ringcron, spike, round 1: it fell over"]
    assert "snake, spike, round 1: broken: it fell over" in notes


def test_faults_of_starts_are_counted() -> None:
    order = Order(4, 100.0, 1.0)
    starts = [Started(0, 100.0), Started(1, 100.5), Started(2, 102.1), Started(2, 102.2), Started(77, 103.0)]
    counts = judge(order, starts, recorded=3)
    assert counts == Counts(jobs=4, started=3, recorded=3, missed=1, twice=2, early=1)
    assert judge(order, [Started(seq, 100.0 + seq) for seq in range(4)], recorded=4).clean


def test_figures_of_a_run_that_was_cut_are_of_what_it_did() -> None:
    order = Order(4, 100.0, 0.0)
    starts = [Started(0, 100.5), Started(1, 101.0), Started(2, 101.5)]
    cut = burst_figures(order, starts, None)
    assert (cut["last_start"], cut["all_complete"], cut["per_second"]) == (None, None, 3.0)
    whole = burst_figures(order, [*starts, Started(3, 102.0)], 102.5)
    assert (whole["last_start"], whole["all_complete"], whole["per_second"]) == (2.0, 2.5, 2.0)


def test_jobs_are_numbered_in_chunks_with_their_instants() -> None:
    assert list(Order(5, 10.0, 0.5).chunks(2)) == [[(0, 10.0), (1, 10.5)], [(2, 11.0), (3, 11.5)], [(4, 12.0)]]
