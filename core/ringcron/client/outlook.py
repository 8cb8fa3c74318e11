"""What is coming, and the capacity that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ringcron.client.values import Instant, Seconds, Value


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak(Value):
    """The second with the most due jobs."""

    at: Instant
    due: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast(Value):
    """What becomes due from `starts_at` on, and how the pool gets through.

    `per_second`: pairs of the seconds after starts_at and the jobs that become due in that second. `worst_delay` None:
    no worker runs anything. `clears_at` None: not within the horizon.
    """

    starts_at: Instant
    horizon: Annotated[Seconds, Field(alias="horizonSeconds")]
    per_second: tuple[tuple[int, int], ...]
    per_minute: tuple[int, ...]
    peak: Peak | None
    backlog: int
    capacity: int
    mean: Annotated[Seconds, Field(alias="meanSeconds")]
    worst_delay: Annotated[Seconds | None, Field(alias="worstDelaySeconds")]
    clears_at: Instant | None
    complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Autoscale(Value):
    """How many runs at the same time the pool should be able to do, and can do now."""

    desired_capacity: int
    capacity: int
    backlog: int
    due_next_minute: int
    mean: Annotated[Seconds, Field(alias="meanSeconds")]
    horizon: Annotated[Seconds, Field(alias="horizonSeconds")]
