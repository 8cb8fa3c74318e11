"""Decoding of claimed rows, each by itself: a row that cannot be decoded goes dead alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from ringcron.going import Going
from ringcron.models import Catchup, Claim, Definition, OnExhausted, Overlap, RetryPolicy
from ringcron.schedule import parse_schedule


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """A claimed job, ready to be decided on and run."""

    going: Going
    revision: int
    cancel_requested: bool

    @property
    def claim(self) -> Claim:
        return self.going.claim


@dataclass(frozen=True, kw_only=True, slots=True)
class Undecodable:
    """A claimed row that makes no sense, and why."""

    claim: Claim
    revision: int
    reason: str


def decode_claimed(claim: Claim, row: Sequence[Any]) -> Claimed | Undecodable:
    """Decode one row of read_claimed.sql. Never raises for what the row holds."""
    try:
        return _decode(claim, row)
    except Exception as fault:  # whatever a hostile row brings about: this row alone is at fault
        return Undecodable(
            claim=claim, revision=row[20], reason=f"its row cannot be decoded: {type(fault).__name__}: {fault}"
        )


def _decode(claim: Claim, row: Sequence[Any]) -> Claimed:
    schedule = None if row[3] is None else orjson.loads(row[3])
    definition = Definition(
        handler=claim.handler,
        payload=orjson.loads(row[2]),
        schedule=schedule,
        run_at=row[4],
        retry=RetryPolicy(
            max_attempts=row[5],
            min_backoff_seconds=row[6],
            max_backoff_seconds=row[7],
            multiplier=row[8],
            max_lost=row[9],
        ),
        timeout_seconds=row[10],
        overlap=Overlap(row[11]),
        catchup=Catchup(row[12]),
        catchup_window_seconds=row[13],
        jitter_seconds=row[14],
        on_exhausted=OnExhausted(row[15]),
    )
    return Claimed(
        going=Going(
            claim=claim,
            definition=definition,
            ticks=None if schedule is None else parse_schedule(schedule),
            occurrences=row[16],
            kept=tuple(row[17] or ()),
            after_current=_after_current(row[19]),
            waiting={} if row[19] is None else orjson.loads(row[19]),
        ),
        revision=row[20],
        cancel_requested=row[18],
    )


def _after_current(text: str | None) -> dict[str, Any]:
    """What waits for the end of the run; a patch with its new ticks, ready to be asked."""
    waiting: dict[str, Any] = {} if text is None else orjson.loads(text)
    if moves := waiting.get("patch"):
        schedule, run_at = moves["schedule"], moves["runAt"]
        waiting["patch"] = {
            "ticks": None if schedule is None else parse_schedule(schedule),
            "run_at": None if run_at is None else datetime.fromisoformat(run_at),
        }
    return waiting
