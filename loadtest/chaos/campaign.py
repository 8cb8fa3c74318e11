"""One chaos run from the first call to the last: load, nemeses in turn, healing, and what is left afterwards.

    warm-up ─▶ segments, one nemesis after the other (or several at once) ─▶ heal ─▶ settle ─▶ liveness ─▶ History

Invariant: the order of the nemeses, and what each of them picks, follow from the seed alone. Nothing is judged here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from loadtest.chaos.arena import Arena
from loadtest.chaos.liveness import Liveness
from loadtest.chaos.nemeses import NEMESES, FaultLog, Nemesis, Stage
from loadtest.chaos.watcher import Watcher
from loadtest.chaos.workload import Workload
from loadtest.progress import Progress
from ringcron.clock import SystemClock

WARM_UP: Final = 8.0
SEGMENT: Final = 40.0
"""About how long one nemesis goes on before the next has its turn."""
LOOK_SECONDS: Final = 0.1


@dataclass(kw_only=True)
class Campaign:
    """What is done, and afterwards what was done. `seconds` of faults; `at_once` nemeses at a time."""

    numbers: Sequence[str]
    seconds: float
    seed: int
    due_per_second: float
    at_once: int = 1
    active: dict[str, float] = field(default_factory=dict)
    """By nemesis: for how many seconds it was at work."""
    skipped: dict[str, str] = field(default_factory=dict)
    """By nemesis: why this machine cannot do it."""
    nemeses: dict[str, Nemesis] = field(default_factory=dict)
    faults: FaultLog = field(default_factory=FaultLog)
    began: float = 0.0
    healed: float = 0.0
    """When the last fault was over (elapsed)."""
    stuck: list[str] = field(default_factory=list)
    """What V1 to V6 found."""
    settled_seconds: float = 0.0

    def run(self, arena: Arena, watcher: Watcher, progress: Progress) -> Workload:
        """Do it all; the workload, with what was asked for and answered. Call it from the main thread."""
        clock = SystemClock()
        self.began = clock.elapsed()
        workload = Workload(
            arena.api_port,
            clock_offset=arena.database.clock_offset(),
            due_per_second=self.due_per_second,
            seed=self.seed,
        )
        liveness = Liveness(arena, watcher, workload)
        stage = Stage(
            arena=arena, workload=workload, watcher=watcher, faults=self.faults, random=random.Random(self.seed)
        )
        for number in self.numbers:
            nemesis = NEMESES[number](stage)
            why = nemesis.unavailable()
            if why is None:
                self.nemeses[number] = nemesis
            else:
                self.skipped[number] = why
                progress.say(f"{number} is left out: {why}")
        workload.begin(WARM_UP + self.seconds)
        try:
            progress.say(f"load: {self.due_per_second:g} jobs due per second; {WARM_UP:g} s without faults")
            self._wait(arena, clock, WARM_UP)
            liveness.remember()
            self._make_faults(arena, clock, progress)
        finally:
            for nemesis in self.nemeses.values():
                nemesis.heal()
            self.healed = clock.elapsed()
            workload.stop()
        progress.say("all healed: waiting until every job has ended")
        self.stuck = liveness.settle(progress)
        self.settled_seconds = clock.elapsed() - self.healed
        return workload

    def _make_faults(self, arena: Arena, clock: SystemClock, progress: Progress) -> None:
        turns = list(self.turns())
        if not turns:
            self._wait(arena, clock, self.seconds)
            return
        for number, turn in enumerate(turns, 1):
            until = self.began + WARM_UP + self.seconds * number / len(turns)
            length = max(1.0, until - clock.elapsed())
            progress.say(f"for {length:.0f} s: " + "; ".join(f"{number} {NEMESES[number].title}" for number in turn))
            began = clock.elapsed()
            self._take_turn(arena, clock, [self.nemeses[number] for number in turn], until)
            for number_ in turn:
                self.active[number_] = self.active.get(number_, 0.0) + clock.elapsed() - began

    def turns(self) -> Iterator[tuple[str, ...]]:
        """Who is at work in each segment: each as often as the others, in an order by the seed; of several at a time
        each breaks another part."""
        numbers = list(self.nemeses)
        order = random.Random(f"turns {self.seed}")
        cycles = round(self.seconds * self.at_once / (SEGMENT * max(1, len(numbers))))
        for _ in range(max(1, cycles)):
            waiting = order.sample(numbers, len(numbers))
            while waiting:
                turn: list[str] = []
                for number in list(waiting):
                    if len(turn) < self.at_once and NEMESES[number].part not in {NEMESES[one].part for one in turn}:
                        turn.append(number)
                        waiting.remove(number)
                yield tuple(turn)

    def _take_turn(self, arena: Arena, clock: SystemClock, nemeses: Sequence[Nemesis], until: float) -> None:
        going: dict[Nemesis, tuple[float, Iterator[float]]] = {
            nemesis: (clock.elapsed(), _rounds(nemesis)) for nemesis in nemeses
        }
        try:
            while clock.elapsed() < until:
                for nemesis, (due, steps) in list(going.items()):
                    if due <= clock.elapsed():
                        going[nemesis] = clock.elapsed() + next(steps), steps
                arena.revive()
                time.sleep(LOOK_SECONDS)
        finally:
            for nemesis, (_, steps) in going.items():
                steps.close()  # type: ignore[attr-defined]
                nemesis.heal()

    def _wait(self, arena: Arena, clock: SystemClock, seconds: float) -> None:
        until = clock.elapsed() + seconds
        while clock.elapsed() < until:
            arena.revive()
            time.sleep(LOOK_SECONDS)


def _rounds(nemesis: Nemesis) -> Iterator[float]:
    while True:
        yield from nemesis.round()
        yield LOOK_SECONDS
