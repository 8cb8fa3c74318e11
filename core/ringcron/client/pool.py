"""The workers, and who of them owns which slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator

from ringcron.client.values import Instant, Seconds, Value
from ringcron.models import Arc


def _arc(pair: Any) -> Arc:
    match pair:
        case [int(lo), int(hi)]:
            return Arc(lo=lo, hi=hi)
    raise ValueError("must be two slots")


WireArc = Annotated[Arc, PlainValidator(_arc), PlainSerializer(lambda arc: [arc.lo, arc.hi])]


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker(Value):
    """What a worker last said of itself."""

    worker_id: str
    name: str
    capacity: int
    running: int
    handlers: tuple[str, ...]
    version: str
    tzdata: str
    epoch: int
    draining: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard(Value):
    """A worker seen through its slice."""

    worker: str
    arcs: tuple[WireArc, ...]
    lag: Annotated[Seconds, Field(alias="lagSeconds")]
    due: int
    running: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotLag(Value):
    """A slot with due jobs that nobody has claimed yet."""

    slot: int
    lag: Annotated[Seconds, Field(alias="lagSeconds")]
    due: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Shards(Value):
    """Who owns which slots, and how late they are, at `taken_at`."""

    items: tuple[Shard, ...]
    slots: tuple[SlotLag, ...]
    unowned: tuple[WireArc, ...]
    epoch: int
    taken_at: Instant
