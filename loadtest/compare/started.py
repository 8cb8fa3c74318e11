"""What the start log of one run says: who started when, and what went wrong. Pure but for the reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

from loadtest.peers.protocol import RECORD, Order

CLOCK_TOLERANCE_SECONDS: Final = 0.001
"""How far the wall clocks of a handler and of the database, on one machine, may be read apart."""


class Started(NamedTuple):
    """Job number `seq` started at `at`, in Unix seconds."""

    seq: int
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Jobs that were to run, that started, that were recorded complete; and the faults."""

    jobs: int
    started: int
    recorded: int
    missed: int
    twice: int
    early: int

    @property
    def clean(self) -> bool:
        return not (self.missed or self.twice or self.early)

    def document(self) -> dict[str, int]:
        """For the record."""
        return asdict(self)


def count_starts(folder: Path) -> int:
    """How many starts have been written down; costs the workers nothing."""
    return sum(path.stat().st_size // RECORD.size for path in folder.glob("*.starts"))


def read_starts(folder: Path, pid: int | None = None) -> list[Started]:
    """All that have been written down, by process `pid` where it is given, in order of time."""
    starts: list[Started] = []
    for path in folder.glob("*.starts" if pid is None else f"{pid}.starts"):
        data = path.read_bytes()
        records = RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size])
        starts += [Started(int(seq), at) for seq, at in records]
    return sorted(starts, key=lambda start: start.at)


def judge(order: Order, starts: Sequence[Started], *, recorded: int) -> Counts:
    """Count the faults. A start of a job that nobody ordered counts as twice."""
    times = Counter(start.seq for start in starts)
    ordered = {seq for seq in times if 0 <= seq < order.jobs}
    surplus = sum(count - (seq in ordered) for seq, count in times.items())
    early = sum(
        start.at < order.at + start.seq * order.spacing - CLOCK_TOLERANCE_SECONDS
        for start in starts
        if start.seq in ordered
    )
    return Counts(
        jobs=order.jobs,
        started=len(ordered),
        recorded=recorded,
        missed=order.jobs - len(ordered),
        twice=surplus,
        early=early,
    )
