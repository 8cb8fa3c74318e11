"""Faults that callers make: storms, herds, jobs that are moved about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import Bite, Nemesis

STORM_SECONDS: Final = 15.0
PAUSE_SECONDS: Final = 3.0
HERD: Final = 300
HERD_SECONDS: Final = 0.05
HERD_AHEAD: Final = 3.0


class Storm(Nemesis):
    """N21: cancels at due ± 5 ms, the same create twice at once, callers that leave, slow sockets."""

    number = "N21"
    title = "callers cancel at the last moment, ask twice, leave, dawdle"
    part = "api"

    def round(self) -> Iterator[float]:
        self.stage.workload.storming = True
        self.rounds += 1
        try:
            yield STORM_SECONDS
        finally:
            self.stage.workload.storming = False
        yield PAUSE_SECONDS

    def bite(self, history: History, seconds: float) -> Bite:
        counts = self.stage.workload.caller.counts
        races = counts["cancel 204"] + counts["cancel 409"]
        hurts = min(races, 2 * counts["replayed"], 2 * counts["disconnects"])
        return Bite(
            number=self.number,
            what=f"of the rarest: {races} cancels ({counts['cancel 409']} too late), {counts['replayed']} replays, "
            f"{counts['disconnects']} who left",
            counted=hurts,
            wanted=self.scaled(20, seconds),
        )


class Herd(Nemesis):
    """N20: hundreds of short jobs fall due in the same instant."""

    number = "N20"
    title = f"{HERD} jobs fall due in the same instant"
    part = "api"

    def round(self) -> Iterator[float]:
        self.stage.workload.herd(HERD, HERD_SECONDS, HERD_AHEAD)
        self.rounds += 1
        yield HERD_AHEAD + 12.0


class Moving(Nemesis):
    """N22: jobs are moved to another day and back while they fall due, so that rows change partition under those who
    wait for them; the upkeep of partitions runs beside it every 5 s."""

    number = "N22"
    title = "jobs are moved between partitions as they fall due"
    part = "api"

    def round(self) -> Iterator[float]:
        for _ in range(20):
            self.stage.workload.move_one()
            yield 0.25
        self.rounds += 1
        yield PAUSE_SECONDS
