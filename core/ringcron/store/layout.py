"""How a partitioned table is laid out over time, and the next change that it needs. Pure.

Invariant: the partitions of a table tile all of time. The first has no lower bound, the last no upper one, each begins
where the one before it ends, so there is always a partition for a row, whatever the clocks do. A change keeps that: a
split cuts one partition in two, a close gives the time of one to the one before it.

    past │ 11-27 │ 11-28 │ today │ 11-30 │ … │ today + days ahead │ rest of December │ January │ … │ far

Every boundary is a midnight in UTC. Where rows may wait for long, months lie between the days and far: to carve a day,
the partition that it lies in is read twice while traffic stands still, and a month is a fraction of what is to come.
The catalog is authoritative for the layout; this is a reading of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

DAY: Final = timedelta(days=1)

Bounds = tuple[datetime | None, datetime | None]
"""[lower, upper); None: no bound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """One partition: rows whose instant lies in [lower, upper)."""

    name: str
    lower: datetime | None  # None: no bound
    upper: datetime | None

    def contains(self, instant: datetime) -> bool:
        """Whether `instant` lies strictly inside, so that the partition can be split there."""
        return (self.lower is None or self.lower < instant) and (self.upper is None or instant < self.upper)


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """Cut `partition` at `at`."""

    partition: Partition
    at: datetime

    @property
    def earlier(self) -> Bounds:
        return self.partition.lower, self.at

    @property
    def later(self) -> Bounds:
        return self.at, self.partition.upper


@dataclass(frozen=True, kw_only=True, slots=True)
class Close:
    """Drop `partition`; its time goes to `before`, the partition that ends where it begins."""

    partition: Partition
    before: Partition


def midnight(instant: datetime) -> datetime:
    """The UTC midnight at or before `instant`."""
    return instant.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def partition_name(table: str, bounds: Bounds) -> str:
    """`<table>_past`, `<table>_far`, `<table>_mYYYYMM` for several days up to the end of a month, which stays the name
    while days are carved out of it, else `<table>_dYYYYMMDD` after the first day."""
    lower, upper = bounds
    if lower is None:
        return f"{table}_past"
    if upper is None:
        return f"{table}_far"
    if upper.day == 1 and upper - lower > DAY:
        return f"{table}_m{upper - DAY:%Y%m}"
    return f"{table}_d{lower:%Y%m%d}"


def boundaries(now: datetime, days_ahead: int, months_ahead: int) -> list[datetime]:
    """Where the partitions from today on have to begin or end: the days first, then the months."""
    today = midnight(now)
    days = [today + n * DAY for n in range(days_ahead + 2)]
    months: list[datetime] = []
    for _ in range(months_ahead + 1 if months_ahead else 0):
        months.append(((months or days)[-1].replace(day=1) + 31 * DAY).replace(day=1))
    return days + months


def next_split(partitions: Sequence[Partition], now: datetime, days_ahead: int, months_ahead: int) -> Split | None:
    """The next cut, so that today and each of the next `days_ahead` days gets a partition of its own, and so do the
    rest of that month and the next `months_ahead` months, if any; None if all have theirs.

    Days that passed while nobody carved stay together in one partition: the look-ups by id gain nothing from more of
    them, and splitting off what is still to come moves fewer rows than sharing out what was left behind.
    """
    for at in boundaries(now, days_ahead, months_ahead):
        for partition in partitions:
            if partition.contains(at):
                return Split(partition=partition, at=at)
    return None


def next_close(partitions: Sequence[Partition], until: datetime, kept: Collection[str] = ()) -> Close | None:
    """The oldest partition that ended by `until`; those named in `kept`, the first and the last are left out."""
    for before, partition in pairwise(partitions):
        if partition.upper is not None and partition.upper <= until and partition.name not in kept:
            return Close(partition=partition, before=before)
    return None
