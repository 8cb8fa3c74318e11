"""A comparison: who takes part, in which order, and what each run gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from loadtest.compare.contestants import Absent, Broken, Contestant
from loadtest.compare.cpu import Quiet
from loadtest.compare.measuring import Measured
from loadtest.compare.works import Work
from loadtest.progress import Progress
from ringcron.local.errors import LocalServerError


@dataclass(kw_only=True, slots=True)
class Results:
    """`absent` says why somebody did not take part; `runs` are documents for the record, in the order of running."""

    versions: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)


class Session:
    """Runs works, interleaved."""

    def __init__(
        self,
        contestants: Sequence[Contestant],
        progress: Progress,
        *,
        prepare: Callable[[Contestant, int], object],
        run_once: Callable[[Work, Contestant, int], Measured],
        quiet: Quiet,
    ) -> None:
        """`prepare` makes a contestant's template with so many far-future jobs, `run_once` does a work once on a copy
        of it; both raise Broken. `quiet` is waited for before each run."""
        self._contestants = contestants
        self._progress = progress
        self._prepare = prepare
        self._run_work = run_once
        self._quiet = quiet
        self.results = Results()

    def install(self) -> None:
        """Make every contestant available, or note that it is absent."""
        for contestant in self._contestants:
            self._progress.say(f"{contestant.name}: installing where it is not there yet")
            try:
                self.results.versions |= contestant.install()
            except Absent as error:
                self.results.absent[contestant.name] = str(error)
                self._progress.say(f"{contestant.name} is absent: {error}")

    def run(self, work: Work, *, rounds: int, ballast: int | None) -> None:
        """A B C … A B C …: every contestant once in each round."""
        amount = work.ballast if ballast is None else ballast
        present = [contestant for contestant in self._contestants if self._takes_part(work, contestant)]
        for contestant in present:
            try:
                self._prepare(contestant, amount)
            except (Broken, psycopg.Error) as error:
                self.results.absent[contestant.name] = f"its schema cannot be made: {error}"
        for number in range(1, rounds + 1):
            for contestant in present:
                if contestant.name not in self.results.absent:
                    self._progress.say(f"{work.name}, round {number} of {rounds}: {contestant.name}")
                    self._run_once(work, contestant, number, amount)

    def _takes_part(self, work: Work, contestant: Contestant) -> bool:
        return contestant.name not in self.results.absent and (work.limit or contestant.kind != "limit")

    def _run_once(self, work: Work, contestant: Contestant, number: int, ballast: int) -> None:
        busy = self._quiet.wait()
        try:
            measured, broken = self._run_work(work, contestant, ballast), None
        except (Broken, LocalServerError, psycopg.Error) as error:
            measured, broken = Measured(figures={}), str(error) or type(error).__name__
        document = run_document(work, contestant.name, number, ballast, measured, broken) | {"busyBefore": busy}
        self.results.runs.append(document)
        self._progress.say(f"    {describe(work, document)}")


def run_document(
    work: Work, contestant: str, number: int, ballast: int, measured: Measured, broken: str | None
) -> dict[str, Any]:
    """One run for the record; `ratios` reads these."""
    return {
        "work": work.name,
        "contestant": contestant,
        "round": number,
        "workers": work.workers,
        "ballast": ballast,
        "figures": dict(measured.figures),
        "counts": None if measured.counts is None else measured.counts.document(),
        "cut": measured.cut,
        "broken": broken,
        **measured.details,
    }


def describe(work: Work, run: Mapping[str, Any]) -> str:
    """One line on a run."""
    if run["broken"] is not None:
        return f"broken: {run['broken']}"
    said = [
        f"{measure.name} {run['figures'][measure.key]:.4g} {measure.unit}"
        for measure in work.measures
        if run["figures"].get(measure.key) is not None
    ]
    if run["counts"] is not None:
        counts = run["counts"]
        said.append(f"missed {counts['missed']}, twice {counts['twice']}, early {counts['early']}")
    return ("cut; " if run["cut"] else "") + ", ".join(said)
