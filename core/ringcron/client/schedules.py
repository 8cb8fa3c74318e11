"""When a job runs, as callers write it and as the API shows it.

    Cron("0 9 * * MON-FRI", timezone="Europe/Madrid")
    Every(timedelta(minutes=15))

Invariant: nothing is judged here. Which schedules are accepted, and when they tick, only the API says.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from ringcron.client.values import Duration, Instant, Value


@dataclass(frozen=True, slots=True)
class Cron(Value):
    """Ticks where the wall clock of `timezone` matches; see core/cron.md for the dialect."""

    expression: Annotated[str, Field(alias="cron")]
    _: KW_ONLY
    timezone: str = "UTC"
    start_at: Instant | None = None
    end_at: Instant | None = None
    max_runs: int | None = None


@dataclass(frozen=True, slots=True)
class Every(Value):
    """Ticks at anchor + n × interval. `anchor` None: the instant of creation."""

    interval: Annotated[Duration, Field(alias="every")]
    _: KW_ONLY
    anchor: Instant | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    max_runs: int | None = None


UnknownSchedule: TypeAlias = dict[str, Any]
"""The document of a schedule that this version of the client cannot read: one such job must not spoil a list."""


Schedule = Annotated[Cron | Every | UnknownSchedule, Field(union_mode="left_to_right")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark(Value):
    """What is unusual about one tick of a preview: moved or doubled by a change of the clocks."""

    at: Instant
    mark: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview(Value):
    """The next ticks of a schedule."""

    next_runs: tuple[Instant, ...]
    marks: tuple[Mark, ...] = ()
