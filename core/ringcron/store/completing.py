"""Completions: what becomes of jobs whose runs have ended, in one fenced statement for many.

Invariant: `_refuse` is the one place that decides what a row means which did not come back: an earlier, unanswered try
of the same write had landed, or the lease is lost (LeaseLost, logged with both generations and counted).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import structlog

from ringcron import metrics
from ringcron.errors import LeaseLost
from ringcron.models import Claim, Skip
from ringcron.store.answers import Completed, EndedRun

_log = structlog.get_logger(__name__)

Execute = Callable[..., Awaitable[list[tuple[Any, ...]]]]
"""Runs a statement by its name with its parameters; `repeatable` as in ringcron.store.connection.transact."""


async def complete_runs(execute: Execute, ended: Sequence[EndedRun], *, owner: str, now: float) -> Completed:
    """Write completions of `owner`. `now`: elapsed seconds, from which the ages of starts and ends are counted."""
    ordered = sorted(ended, key=lambda run: run.claim.id)
    parameters = {
        "rows": json_text([_row(run, now) for run in ordered]),
        "owner": owner,
        **span_of([run.claim for run in ordered]),
    }
    rows = await execute("complete_runs", parameters, repeatable=True)
    answered = {(row[0], row[1]): bool(row[2]) for row in rows}
    missing = [run for run in ordered if _token(run) not in answered]
    landed, refused = await _refuse(execute, missing, owner=owner, operation="complete")
    return Completed(
        written=tuple(run for run in ordered if answered.get(_token(run)) or _token(run) in landed),
        moved=tuple(run for run in ordered if answered.get(_token(run)) is False),
        refused=tuple(refused),
    )


def _row(run: EndedRun, now: float) -> dict[str, Any]:
    completion = run.completion
    return {
        "id": run.claim.id,
        "next_run_at": run.claim.next_run_at,
        "lease_generation": run.claim.lease_generation,
        "revision": run.revision,
        "outcome": run.outcome,
        "error": run.error,
        "result": None if run.result is None else orjson.Fragment(run.result),
        "started_ago": now - run.started_at,
        "finished_ago": now - run.finished_at,
        "state": completion.state,
        "following": completion.next_run_at,
        "delay": completion.delay_seconds,
        "scheduled_for": completion.scheduled_for,
        "cause": completion.cause,
        "attempt": completion.attempt,
        "decided_until": completion.decided_until,
        "kept": list(completion.kept) or None,
        "dead_reason": completion.dead_reason,
        "give_back": completion.give_back,
        "patched": completion.patched,
        "after_current": completion.after_current,
        **skip_fields(completion.skip),
    }


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


def _token(run: EndedRun) -> tuple[UUID, int]:
    return run.claim.id, run.claim.lease_generation


def span_of(claims: Sequence[Claim]) -> Mapping[str, datetime]:
    """The bounds that prune partitions for these rows: their own next_run_at, both ends included."""
    instants = [claim.next_run_at for claim in claims]
    return {"first_at": min(instants), "last_at": max(instants)}


def json_text(rows: Any) -> str:
    """JSON for a parameter of type json."""
    return orjson.dumps(rows, option=orjson.OPT_UTC_Z).decode()


def skip_fields(skip: Skip | None) -> dict[str, Any]:
    """The columns of a skip row; none where there is no skip."""
    if skip is None:
        return {}
    return {"skip_first": skip.first, "skip_last": skip.last, "skip_count": skip.count, "skip_reason": skip.reason}
