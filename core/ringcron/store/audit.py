"""Who did what to a job: one row for each change that a caller made.

Invariant: an entry is written in the transaction of its change, so that there is none without the other. Entries are
for people; nothing decides by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import orjson

from ringcron.store.connection import Connection
from ringcron_sql import query


class Action(StrEnum):
    """What was done, as it is stored and shown."""

    CANCEL = "cancel"  # DELETE of a job
    CANCEL_RUN = "cancel-run"
    DRAIN = "drain"  # of a worker
    PATCH = "patch"
    PAUSE = "pause"
    RESUME = "resume"
    TRIGGER = "trigger"
    REDRIVE = "redrive"


@dataclass(frozen=True, kw_only=True, slots=True)
class Act:
    """What a caller is about to do. No `key_id`: no key was needed. `detail` is for acts on many jobs."""

    action: Action
    key_id: str | None = None
    key_name: str | None = None
    request_id: str | None = None
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry:
    """An act and when it was done. `id` grows."""

    id: int
    at: datetime
    act: Act


async def record(connection: Connection, act: Act, *, job_id: UUID | None) -> None:
    """Note an act in the caller's transaction. `job_id` None: it was done to many."""
    await connection.execute(query("insert_audit_entry"), {"job_id": job_id, **parameters_of(act)})


def parameters_of(act: Act | None) -> dict[str, Any]:
    """What statements that note an act take; without an act they note nothing."""
    if act is None:
        return {"action": None, "key_id": None, "key_name": None, "request_id": None, "detail": None}
    return {
        "action": act.action.value,
        "key_id": act.key_id,
        "key_name": act.key_name,
        "request_id": act.request_id,
        "detail": None if act.detail is None else orjson.dumps(act.detail).decode(),
    }


def entry_from_row(row: Mapping[str, Any]) -> AuditEntry:
    """A row of list_audit_entries."""
    act = Act(
        action=Action(row["action"]),
        key_id=row["key_id"],
        key_name=row["key_name"],
        request_id=row["request_id"],
        detail=row["detail"],
    )
    return AuditEntry(id=row["id"], at=row["at"], act=act)
