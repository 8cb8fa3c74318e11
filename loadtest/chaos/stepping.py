"""Takes the steps of the database's clock out of what the database said, so that a history is told in time that passes.

Invariant: when something happened, and until when a lease lasts, is told on the clock as it would be without its
steps; what something is for (a tick, `scheduled_for`, `next_run_at`) stays what it is.

Which of the offsets was in force at a reading is told by the order of the audit trail, in which a change follows soon
upon the other, and by which of them was in force when the clock, so corrected, stood there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from loadtest.chaos.history import Step, Version
from loadtest.chaos.truth import Said

NEAR_SECONDS: Final = 0.05
"""The order of the trail may be wrong so close to a step."""
FOREVER: Final = float("inf")


class Unstepped:
    """`steps`: in order, on the clock without steps."""

    def __init__(self, steps: Sequence[Step]) -> None:
        first = Step(at=-FOREVER, offset=0.0, seq=0)
        self._spans = list(pairwise([first, *steps, Step(at=FOREVER, offset=0.0, seq=0)]))

    def by_order(self, said: float, seq: int, before: float) -> float:
        """A reading that was written down as number `seq` of the trail, next to one that was taken `before`."""
        number = sum(step.seq < seq for step, _ in self._spans[1:])
        around = [self._spans[one] for one in (number, number + 1, number - 1) if 0 <= one < len(self._spans)]
        return min(_fitting(said, around), key=lambda at: abs(at - before), default=said - around[0][0].offset)

    def near(self, said: float, about: float) -> float:
        """A reading that was taken at about that time."""
        return min(_fitting(said, self._spans), key=lambda at: abs(at - about), default=about)


def _fitting(said: float, spans: Sequence[tuple[Step, Step]]) -> Iterator[float]:
    """The instants at which the clock can have said so, one for each span at most."""
    for step, following in spans:
        if step.at - NEAR_SECONDS <= said - step.offset <= following.at + NEAR_SECONDS:
            yield said - step.offset


def without_steps(testimony: Said, steps: Sequence[Step]) -> Said:
    """What the server said, its instants as if its clock had not stepped."""
    if not steps:
        return testimony
    clock = Unstepped(steps)
    versions = _versions(testimony.versions, clock)
    claimed_at: dict[tuple[str, int], float] = {}
    closed_at: dict[tuple[str, int], float] = {}
    for version in reversed(versions):
        (claimed_at if version.state == "claimed" else closed_at)[version.job, version.generation] = version.at
    last = max((version.at for version in versions), default=0.0)
    return testimony._replace(
        versions=versions,
        runs=[
            dataclasses.replace(
                run,
                claimed_at=clock.near(run.claimed_at, claimed_at.get((run.job, run.generation), last)),
                finished_at=clock.near(run.finished_at, closed_at.get((run.job, run.generation), last)),
            )
            for run in testimony.runs
        ],
        skips=[dataclasses.replace(skip, decided_at=clock.near(skip.decided_at, last)) for skip in testimony.skips],
    )


def _versions(versions: Sequence[Version], clock: Unstepped) -> list[Version]:
    """A lease that a change left alone ends when it did before, whatever the clock says by then."""
    leases: dict[str, tuple[float | None, float | None]] = {}
    found = []
    at = versions[0].at if versions else 0.0
    for version in versions:
        at = clock.by_order(version.at, version.seq, at)
        said, ends = leases.get(version.job, (None, None))
        if version.lease_until != said and version.lease_until is not None:
            ends = at + version.lease_until - version.at
        leases[version.job] = version.lease_until, ends
        found.append(dataclasses.replace(version, at=at, lease_until=None if version.lease_until is None else ends))
    return found
