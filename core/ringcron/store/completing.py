"""Completions: what becomes of jobs whose runs have ended, in one fenced statement for many.

Invariant: `_refuse` is the one place that decides what a row means which did not come back: an earlier, unanswered try
of the same write had landed, or the lease is lost (LeaseLost, logged with both generations and counted).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson
import structlog

from ringcron import metrics
from ringcron.errors import LeaseLost
from ringcron.models import Claim, Skip
from ringcron.store.answers import Completed, EndedRun

_OCCURRENCE: Final = ("scheduled_for", "cause", "attempt", "decided_until")
_RARE: Final = ("kept", "dead_reason", "give_back", "patched", "after_current", "given_up")
_DAY: Final = timedelta(days=1) - timedelta(microseconds=1)
_log = structlog.get_logger(__name__)

Execute = Callable[..., Awaitable[list[tuple[Any, ...]]]]
"""Runs a statement by its name with its parameters; `repeatable` as in ringcron.store.connection.transact."""


async def complete_runs(execute: Execute, ended: Sequence[EndedRun], *, owner: str, now: float) -> Completed:
    """Write completions of `owner`. `now`: elapsed seconds, from which the ages of starts and ends are counted."""
    ordered = sorted(ended, key=_id_order)
    parameters = {
        "rows": json_text([_row(run, now) for run in ordered]),
        "owner": owner,
        **span_of([run.claim for run in ordered]),
    }
    rows = await execute("complete_runs", parameters, repeatable=True)
    if len(rows) == len(ordered) and all(row[2] for row in rows):
        return Completed(written=tuple(ordered), moved=(), refused=())
    answered = {(row[0], row[1]): bool(row[2]) for row in rows}
    missing = [run for run in ordered if _token(run) not in answered]
    landed, refused = await _refuse(execute, missing, owner=owner, operation="complete")
    return Completed(
        written=tuple(run for run in ordered if answered.get(_token(run)) or _token(run) in landed),
        moved=tuple(run for run in ordered if answered.get(_token(run)) is False),
        refused=tuple(refused),
    )


def _row(run: EndedRun, now: float) -> dict[str, Any]:
    """One row of complete_runs.sql; what is as it was, or nothing, is left out: reading it is what costs there."""
    claim, completion = run.claim, run.completion
    row = {
        "id": claim.id,
        "next_run_at": claim.next_run_at,
        "lease_generation": claim.lease_generation,
        "revision": run.revision,
        "outcome": run.outcome,
        "started_ago": now - run.started_at,
        "finished_ago": now - run.finished_at,
        "state": completion.state,
    }
    if run.error is not None:
        row["error"] = run.error
    if run.result is not None:
        row["result"] = orjson.Fragment(run.result)
    if completion.next_run_at is not None:
        row["following"] = completion.next_run_at
    if completion.delay_seconds:
        row["delay"] = completion.delay_seconds
    for field in _OCCURRENCE:
        value = getattr(completion, field)
        if value != getattr(claim, field):
            row[field] = value
    for field in _RARE:
        value = getattr(completion, field)
        if value:
            row[field] = value
    if completion.skip is not None:
        row |= skip_fields(completion.skip)
    return row


async def _refuse(
    execute: Execute, missing: Sequence[EndedRun], *, owner: str, operation: str
) -> tuple[set[tuple[UUID, int]], list[tuple[EndedRun, LeaseLost]]]:
    """Which of the rows that did not come back had landed before, and the others with their LeaseLost."""
    if not missing:
        return set(), []
    parameters = {
        "ids": [run.claim.id for run in missing],
        "generations": [run.claim.lease_generation for run in missing],
        "owner": owner,
        "claimed_from": min(run.claim.claimed_at for run in missing) - timedelta(seconds=1),
    }
    rows = await execute("find_landed", parameters, repeatable=True)
    landed = {(row[0], row[1]) for row in rows if row[2]}
    current = {row[0]: row[3] for row in rows}
    refused = []
    for run in missing:
        if _token(run) in landed:
            continue
        error = LeaseLost(
            run.claim.id,
            held_generation=run.claim.lease_generation,
            current_generation=current.get(run.claim.id),
            operation=operation,
        )
        metrics.STALE_WRITES[operation].inc()
        _log.warning(
            "write refused: the lease is gone",
            operation=operation,
            job=str(run.claim.id),
            held_generation=error.held_generation,
            current_generation=error.current_generation,
            outcome=run.outcome.value,
        )
        refused.append((run, error))
    return landed, refused


def _id_order(run: EndedRun) -> int:
    """As PostgreSQL orders ids."""
    return run.claim.id.int


def _token(run: EndedRun) -> tuple[UUID, int]:
    return run.claim.id, run.claim.lease_generation


def span_of(claims: Sequence[Claim]) -> Mapping[str, datetime]:
    """The bounds that prune partitions for these rows: the days of their own next_run_at, both ends included."""
    instants = [claim.next_run_at for claim in claims]
    return days_of(min(instants), max(instants))


def days_of(first: datetime, last: datetime) -> Mapping[str, datetime]:
    """The days from `first` to `last`, both included, and the one before, as the bounds that prune partitions.

    The one before, because PostgreSQL 18 forgets that a partition must not be read from end to end where it is the only
    one (ringcron.store.link.PLANS).
    """
    first_at, last_at = (at.replace(hour=0, minute=0, second=0, microsecond=0) for at in (first, last))
    return {"first_at": first_at - timedelta(days=1), "last_at": last_at + _DAY}


def json_text(rows: Any) -> str:
    """JSON for a parameter of type json."""
    return orjson.dumps(rows, option=orjson.OPT_UTC_Z).decode()


def skip_fields(skip: Skip | None) -> dict[str, Any]:
    """The columns of a skip row; none where there is no skip."""
    if skip is None:
        return {}
    return {"skip_first": skip.first, "skip_last": skip.last, "skip_count": skip.count, "skip_reason": skip.reason}
