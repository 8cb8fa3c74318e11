"""The statements of the limit, with their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from loadtest.database import statement
from ringcron.slots import SLOT_COUNT

CLAIM: Final = statement("limit/claim")
COMPLETE: Final = statement("limit/complete")
ENQUEUE: Final = statement("limit/enqueue")
NEXT_DUE: Final = statement("limit/next_due")
SLEEP_SECONDS: Final = 1.0
"""Longest sleep between two looks at what is due next."""

_KIND: Final = 4 << 76 | 8 << 60  # version and variant of a UUID that nobody computes


class Claimed(NamedTuple):
    """One claimed job."""

    id: UUID
    next_run_at: datetime
    lease_generation: int
    claimed_at: datetime


def id_of(seq: int) -> UUID:
    """The id of job number `seq`: its low bits are the number, so that a claim need not read the payload."""
    return UUID(int=_KIND | seq)


def seq_of(job_id: UUID) -> int:
    """The number of the job of that id."""
    return job_id.int & 0xFFFFFFFF


def bounds(now: datetime) -> dict[str, datetime]:
    """From yesterday to an hour ahead, as ringcron claims."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return {"from_at": midnight - timedelta(days=1), "until_at": now + timedelta(hours=1)}


def complete_parameters(claimed: Sequence[Claimed], owner: str, within: dict[str, datetime]) -> dict[str, Any]:
    """What COMPLETE is told of them."""
    return {
        "ids": [claim.id for claim in claimed],
        "at": [claim.next_run_at for claim in claimed],
        "generations": [claim.lease_generation for claim in claimed],
        "claimed_at": [claim.claimed_at for claim in claimed],
        "owner": owner,
        **within,
    }


def enqueue_parameters(jobs: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """What ENQUEUE is told of jobs, each a number and an instant in Unix seconds."""
    return {
        "ids": [id_of(seq) for seq, _ in jobs],
        "at": [datetime.fromtimestamp(at, UTC) for _, at in jobs],
        "slots": [seq * 7 % SLOT_COUNT for seq, _ in jobs],
        "payloads": [f'{{"seq": {seq}}}' for seq, _ in jobs],
    }
