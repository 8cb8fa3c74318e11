"""Decoding of claimed rows, each by itself: a row that cannot be decoded goes dead alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import orjson

from ringcron.going import Going
from ringcron.models import Catchup, Cause, Claim, Definition, OnExhausted, Overlap, RetryPolicy
from ringcron.records import record
from ringcron.schedule import Schedule, parse_schedule


@record(frozen=True, kw_only=True, slots=True)
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


CLAIMED_AT: Final = 7
"""The column of claim.sql with the database's clock."""
_PAYLOAD: Final = 10
"""The definition begins here."""
_REVISION: Final = 8
"""Of the definition."""
_CAUSES: Final = {cause.value: cause for cause in Cause}


def claim_of(row: Sequence[Any]) -> Claim:
    """One row of claim.sql."""
    return Claim(
        id=row[0],
        next_run_at=row[1],
        lease_generation=row[2],
        handler=row[3],
        attempt=row[4],
        scheduled_for=row[5],
        cause=_CAUSES[row[6]],
        claimed_at=row[CLAIMED_AT],
        decided_until=row[8],
        lost=row[9],
        inline=None if row[_PAYLOAD] is None else tuple(row[_PAYLOAD:]),
    )


def decode_claimed(claim: Claim, definition: Sequence[Any]) -> Claimed | Undecodable:
    """Decode the definition of one row, as read_claimed.sql has it from its third column on and claim.sql behind the
    clock. Never raises for what the row holds."""
    try:
        return _decode(claim, definition)
    except Exception as fault:  # whatever a hostile row brings about: this row alone is at fault
        reason = f"its row cannot be decoded: {type(fault).__name__}: {fault}"
        return Undecodable(claim=claim, revision=definition[_REVISION], reason=reason)


def _decode(claim: Claim, definition: Sequence[Any]) -> Claimed:
    payload, schedule, run_at, policies, occurrences, kept, cancelling, waiting, revision, caller, state = definition
    retry, timeout, overlap, catchup, window, jitter, on_exhausted = _policies(policies)
    return Claimed(
        going=Going(
            claim=claim,
            definition=Definition(
                handler=claim.handler,
                payload=orjson.loads(payload),
                schedule=None if schedule is None else orjson.loads(schedule),
                run_at=run_at,
                retry=retry,
                timeout_seconds=timeout,
                overlap=overlap,
                catchup=catchup,
                catchup_window_seconds=window,
                jitter_seconds=jitter,
                on_exhausted=on_exhausted,
                traceparent=caller,
                tracestate=state,
            ),
            ticks=None if schedule is None else _ticks(schedule),
            occurrences=occurrences,
            kept=tuple(kept or ()),
            after_current={} if waiting is None else _after_current(waiting),
            waiting={} if waiting is None else orjson.loads(waiting),
        ),
        revision=revision,
        cancel_requested=cancelling,
    )


@lru_cache(maxsize=256)
def _policies(row: str) -> tuple[RetryPolicy, float | None, Overlap, Catchup, float, float, OnExhausted]:
    """Of a row as PostgreSQL writes it: most jobs have the same. Numbers and names only, so nothing in it is quoted."""
    attempts, least, most, multiplier, max_lost, timeout, *names = row.removeprefix("(").removesuffix(")").split(",")
    overlap, catchup, window, jitter, on_exhausted = names
    retry = RetryPolicy(
        max_attempts=int(attempts),
        min_backoff_seconds=float(least),
        max_backoff_seconds=float(most),
        multiplier=float(multiplier),
        max_lost=int(max_lost),
    )
    return (
        retry,
        float(timeout) if timeout else None,
        Overlap(overlap),
        Catchup(catchup),
        float(window),
        float(jitter),
        OnExhausted(on_exhausted),
    )


@lru_cache(maxsize=1024)
def _ticks(schedule: str) -> Schedule:
    """A schedule is worked out once; many jobs have the same, and a job's comes again and again."""
    return parse_schedule(orjson.loads(schedule))


def _after_current(text: str) -> dict[str, Any]:
    """What waits for the end of the run; a patch with its new ticks, ready to be asked."""
    waiting: dict[str, Any] = orjson.loads(text)
    if moves := waiting.get("patch"):
        schedule, run_at = moves["schedule"], moves["runAt"]
        waiting["patch"] = {
            "ticks": None if schedule is None else parse_schedule(schedule),
            "run_at": None if run_at is None else datetime.fromisoformat(run_at),
        }
    return waiting
