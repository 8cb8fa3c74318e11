"""What a nemesis is: something that breaks real processes, round after round, and says whether that could be felt.

Invariant: a round heals what it broke before it ends, also when it is cut short (`heal`). What it does is noted as
faults, with the name of whom it was done to: the checker excuses an overlap only by these.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from loadtest.chaos.history import Fault, History
from ringcron.clock import SystemClock

if TYPE_CHECKING:
    from loadtest.chaos.arena import Arena
    from loadtest.chaos.watcher import Watcher
    from loadtest.chaos.workload import Workload

EVERYTHING = "*"
SEGMENT = 40.0
"""What is demanded of a nemesis is counted for so many seconds of it."""


@dataclass(kw_only=True)
class FaultLog:
    """Faults in the elapsed clock's seconds."""

    faults: list[Fault] = field(default_factory=list)
    clock: SystemClock = field(default_factory=SystemClock)

    def add(self, name: str, target: str, begin: float, *, after: float = 0.0) -> None:
        """A fault from `begin` until now and `after` seconds."""
        self.faults.append(Fault(name=name, target=target, begin=begin, end=self.clock.elapsed() + after))

    @contextmanager
    def during(self, name: str, target: str, *, after: float = 0.0) -> Iterator[None]:
        """A fault as long as the block, and `after` seconds more in which its effects are felt."""
        begin = self.clock.elapsed()
        try:
            yield
        finally:
            self.add(name, target, begin, after=after)


@dataclass(frozen=True, kw_only=True)
class Bite:
    """Whether a nemesis was felt: what was counted, and how much of it is demanded."""

    number: str
    what: str
    counted: int
    wanted: int

    @property
    def enough(self) -> bool:
        return self.counted >= self.wanted


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a nemesis may lay hands on."""

    arena: Arena
    workload: Workload
    watcher: Watcher
    faults: FaultLog
    random: random.Random


class Nemesis:
    """One kind of fault. `round` yields how many seconds to wait before it goes on; it is cut short at any yield, and
    `heal` is called afterwards in any case."""

    number: ClassVar[str]
    title: ClassVar[str]
    part: ClassVar[str]
    """What it breaks: of two at a time each has another."""
    proxied: ClassVar[bool] = False
    """Whether it needs the proxy between ringcron and its servers."""
    separates: ClassVar[bool] = False
    """Whether it cuts workers off from their servers."""
    zookeepers: ClassVar[int] = 1
    """How many ZooKeeper servers it needs."""
    small_disk: ClassVar[bool] = False
    """Whether it needs a disk of PostgreSQL's own."""

    replicated: ClassVar[bool] = False
    """Whether PostgreSQL must be able to have a standby."""
    fakes_clock: ClassVar[bool] = False
    """Whether PostgreSQL's clock must be one that can be stepped."""
    alone: ClassVar[bool] = False
    """Whether it needs a run of its own, since what is judged is not the same: it is not part of `all`."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.arena = stage.arena
        self.faults = stage.faults
        self.random = stage.random
        self.rounds = 0

    def unavailable(self) -> str | None:
        """Why this machine cannot do it; None where it can."""
        return None

    def round(self) -> Iterator[float]:
        """One round: break, wait, heal."""
        raise NotImplementedError

    def heal(self) -> None:
        """Undo what a round that was cut short left behind."""

    def bite(self, history: History, seconds: float) -> Bite:
        """Whether it was felt, after `seconds` of it in all."""
        return Bite(number=self.number, what="rounds", counted=self.rounds, wanted=1)

    def scaled(self, a_segment: int, seconds: float) -> int:
        """What is demanded in `seconds`, where `a_segment` is demanded in SEGMENT; at least 1."""
        return max(1, int(a_segment * seconds / SEGMENT))
