"""The ways to size a pool that are compared. Pure: a policy is told what there is and names a number of workers.

Each worker runs one job at a time, as in the brief; so workers, capacity and runs at the same time are one number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from ringcron.forecast import Coming, desired_capacity

EPOCH: Final = datetime(2027, 3, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What a policy can know at `second`. `due` is the schedule of the whole day; what is ahead may be looked at."""

    second: int
    due: Sequence[int]
    job_seconds: float
    ready: int
    running: int
    backlog: int
    use: float
    """Share of the ready workers that were busy over the last CPU window."""


class Policy(Protocol):
    """`period`: seconds between two questions. `stabilised`: the pool shrinks to the most of the last 5 minutes."""

    @property
    def name(self) -> str: ...

    @property
    def period(self) -> int: ...

    @property
    def stabilised(self) -> bool: ...

    def wanted(self, seen: Seen) -> int:
        """How many workers there should be."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always so many."""

    workers: int
    period: int = 3_600
    stabilised: bool = False

    @property
    def name(self) -> str:
        return f"fixed {self.workers}"

    def wanted(self, seen: Seen) -> int:
        return self.workers


@dataclass(frozen=True, slots=True)
class OnCpu:
    """A horizontal autoscaler on CPU, as Kubernetes ships it: target 70 %, asked every 15 s, at most doubling (or 4
    more) each time, within 10 % of the target nothing."""

    name: str = "reactive, on CPU"
    period: int = 15
    stabilised: bool = True
    target: float = 0.7

    def wanted(self, seen: Seen) -> int:
        ratio = seen.use / self.target
        if abs(ratio - 1) <= 0.1:
            return seen.ready
        return min(math.ceil(seen.ready * ratio), max(2 * seen.ready, seen.ready + 4))


@dataclass(frozen=True, slots=True)
class NextMinute:
    """The larger of the backlog and what falls due in the next minute, cleared within a minute."""

    name: str = "due in the next minute"
    period: int = 5
    stabilised: bool = True

    def wanted(self, seen: Seen) -> int:
        soon = sum(seen.due[max(seen.second, 0) : seen.second + 60])
        return math.ceil(max(seen.backlog, soon) * seen.job_seconds / 60)


@dataclass(frozen=True, slots=True)
class Ahead:
    """`GET /autoscale`: all that falls due until a worker that is started now would be ready, each spike cleared within
    `clear_seconds`. It is the function that the API answers with."""

    lead_seconds: int
    clear_seconds: int
    period: int = 5
    stabilised: bool = True

    @property
    def name(self) -> str:
        return f"GET /autoscale, clear within {self.clear_seconds} s"

    def wanted(self, seen: Seen) -> int:
        # What is due in this second waits already.
        due = seen.due[seen.second + 1 : seen.second + 1 + self.lead_seconds + self.clear_seconds]
        coming = Coming(start=EPOCH, due=due, work=[jobs * seen.job_seconds for jobs in due])
        backlog_work = seen.backlog * seen.job_seconds + seen.running * seen.job_seconds / 2
        return desired_capacity(
            coming, backlog_work=backlog_work, lead_seconds=self.lead_seconds, clear_seconds=self.clear_seconds
        )
