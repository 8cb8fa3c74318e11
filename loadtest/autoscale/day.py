"""The day that is simulated: how many jobs become due in each second. Pure, and the same for every policy.

Schedules cluster on the hour, on the half and on every fifteenth minute, more by day than by night; beside them runs a
thin stream of one-offs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

DAY_SECONDS: Final = 86_400
HOUR_SECONDS: Final = 3_600
OFFICE_HOURS: Final = range(8, 19)
NIGHT_SHARE: Final = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class Clusters:
    """Jobs due in the first second of each hour, half hour, quarter and minute; one-offs a second."""

    hour: int = 2_000
    half: int = 500
    quarter: int = 200
    minute: int = 20
    stream: float = 0.5


def due_by_second(clusters: Clusters, *, seed: int) -> list[int]:
    """The jobs due in each second of a day, from midnight on."""
    rng = random.Random(seed)
    due = [0] * DAY_SECONDS
    for second in range(0, DAY_SECONDS, 60):
        share = 1.0 if second // HOUR_SECONDS in OFFICE_HOURS else NIGHT_SHARE
        due[second] += round(_at(clusters, second % HOUR_SECONDS) * share)
    for _ in range(round(clusters.stream * DAY_SECONDS)):
        due[rng.randrange(DAY_SECONDS)] += 1
    return due


def _at(clusters: Clusters, second_of_hour: int) -> int:
    minute = second_of_hour // 60
    if minute == 0:
        return clusters.hour
    if minute == 30:
        return clusters.half
    return clusters.quarter if minute % 15 == 0 else clusters.minute
