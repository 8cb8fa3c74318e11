"""A pool under a policy, second by second for a day. Pure.

A worker that is asked for is ready `start_seconds` later. One that is no longer wanted finishes its run and goes, idle
ones first. Jobs start in the order in which they became due, as soon as a ready worker is free; late, never lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadtest.autoscale.policies import Policy, Seen
from loadtest.distributions import Distribution


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """`cpu_window`: seconds over which use is measured, which is also how late it is. `keep_seconds`: how long the
    largest number that was wanted is kept before the pool shrinks."""

    start_seconds: int = 60
    least: int = 2
    most: int = 250
    job_seconds: int = 5
    cpu_window: int = 30
    keep_seconds: int = 300


@dataclass(kw_only=True, slots=True)
class Day:
    """What came of it. `lateness`: of each job, whole seconds. `ready`: workers, by second."""

    policy: str
    lateness: list[int] = field(default_factory=list)
    late_by_second: dict[int, int] = field(default_factory=dict)
    """Of the jobs due in a second, the largest lateness."""
    ready: list[int] = field(default_factory=list)
    paid_seconds: int = 0
    """Worker-seconds, those that start or finish included."""

    @property
    def worker_hours(self) -> float:
        return self.paid_seconds / 3600

    @property
    def distribution(self) -> Distribution:
        return Distribution.of(self.lateness)


@dataclass(slots=True)
class _Pool:
    rules: Rules
    ready: int
    starting: deque[tuple[int, int]] = field(default_factory=deque)
    """(second of readiness, workers)"""
    ending: deque[tuple[int, int]] = field(default_factory=deque)
    """(second in which their job ends, runs)"""
    running: int = 0
    waiting: deque[list[int]] = field(default_factory=deque)
    """[due second, jobs left]"""
    use: deque[float] = field(default_factory=deque)
    wanted: deque[tuple[int, int]] = field(default_factory=deque)

    @property
    def backlog(self) -> int:
        return sum(jobs for _, jobs in self.waiting)

    def advance(self, second: int) -> None:
        """Workers become ready, runs end."""
        while self.starting and self.starting[0][0] <= second:
            self.ready += self.starting.popleft()[1]
        while self.ending and self.ending[0][0] <= second:
            self.running -= self.ending.popleft()[1]

    def start(self, second: int, day: Day) -> None:
        """Free workers take the oldest jobs."""
        free = max(0, self.ready - self.running)
        begun = 0
        while free > begun and self.waiting:
            entry = self.waiting[0]
            taken = min(free - begun, entry[1])
            late = second - entry[0]
            day.lateness.extend([late] * taken)
            day.late_by_second[entry[0]] = late
            entry[1] -= taken
            begun += taken
            if entry[1] == 0:
                self.waiting.popleft()
        if begun:
            self.ending.append((second + self.rules.job_seconds, begun))
            self.running += begun
        self.use.append(min(1.0, self.running / self.ready) if self.ready else 1.0)
        if len(self.use) > self.rules.cpu_window:
            self.use.popleft()

    def size(self, second: int, wanted: int, *, stabilised: bool) -> None:
        """Ask for more workers, or let some go."""
        wanted = min(max(wanted, self.rules.least), self.rules.most)
        if stabilised:
            self.wanted.append((second, wanted))
            while self.wanted[0][0] < second - self.rules.keep_seconds:
                self.wanted.popleft()
            keep = max(number for _, number in self.wanted)
        else:
            keep = wanted
        there = self.ready + sum(workers for _, workers in self.starting)
        if wanted > there:
            self.starting.append((second + self.rules.start_seconds, wanted - there))
        elif keep < there:
            self.ready -= min(self.ready, there - keep)


def simulate(policy: Policy, due: Sequence[int], rules: Rules) -> Day:
    """A day from midnight on. It begins with the number ready that the policy wants in the second before."""
    day = Day(policy=policy.name)
    pool = _Pool(rules=rules, ready=rules.least)
    pool.ready = min(max(policy.wanted(_seen(pool, due, -1)), rules.least), rules.most)
    for second, jobs in enumerate(due):
        pool.advance(second)
        if jobs:
            pool.waiting.append([second, jobs])
        if second % policy.period == 0:
            pool.size(second, policy.wanted(_seen(pool, due, second)), stabilised=policy.stabilised)
        pool.start(second, day)
        day.ready.append(pool.ready)
        day.paid_seconds += max(pool.ready, pool.running) + sum(workers for _, workers in pool.starting)
    second = len(due)
    while pool.waiting:  # past midnight, with the pool as it is then
        pool.advance(second)
        pool.start(second, day)
        second += 1
    return day


def _seen(pool: _Pool, due: Sequence[int], second: int) -> Seen:
    return Seen(
        second=second,
        due=due,
        job_seconds=pool.rules.job_seconds,
        ready=pool.ready,
        running=pool.running,
        backlog=pool.backlog,
        use=sum(pool.use) / len(pool.use) if pool.use else 0.0,
    )
