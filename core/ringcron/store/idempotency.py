"""Answers given to requests with an Idempotency-Key, kept for a day.

Invariant: an answer and its effect are one transaction. The key is taken at the start of it and its lock kept to the
end, so of many requests with one key only one has an effect, in whatever process; whoever comes later waits for that
transaction, and finds the answer, or the key free because all was rolled back. A crash leaves both or neither: there is
no key "in progress" that somebody would have to clean up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson
import psycopg

from ringcron.errors import IdempotencyInProgress
from ringcron.store.connection import Connection
from ringcron_sql import query

KEPT_SECONDS: Final = 86400.0
"""An answer is given again for so long; then the key is as new."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a request is answered with, as far as it is kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptAnswer:
    """An answer that was given before, and the fingerprint of the request that it was given to."""

    fingerprint: bytes
    answer: Answer


async def find_answer(connection: Connection, key_id: bytes) -> KeptAnswer | None:
    """The answer that was given to the key; None where there is none, or only one that is too old."""
    cursor = await connection.execute(
        query("find_idempotent_answer"), {"id": key_id, "kept_seconds": KEPT_SECONDS}, prepare=True
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    fingerprint, status, headers, body = row
    return KeptAnswer(fingerprint=fingerprint, answer=Answer(status=status, headers=orjson.loads(headers), body=body))


async def hold_key(
    connection: Connection, key_id: bytes, fingerprint: bytes, *, wait_seconds: float
) -> KeptAnswer | None:
    """Take the key for this transaction; or the answer that was given to it.

    Raises IdempotencyInProgress where another transaction holds the key for longer than `wait_seconds`.
    """
    parameters = {"id": key_id, "fingerprint": fingerprint, "kept_seconds": KEPT_SECONDS}
    await _limit_lock_wait(connection, f"{max(1, round(wait_seconds * 1000))}ms")
    try:
        cursor = await connection.execute(query("hold_idempotency_key"), parameters, prepare=True)
        taken = await cursor.fetchone() is not None
    except psycopg.errors.LockNotAvailable as error:
        raise IdempotencyInProgress from error
    await _limit_lock_wait(connection, "0")
    return None if taken else await find_answer(connection, key_id)


async def keep_answer(connection: Connection, key_id: bytes, answer: Answer) -> None:
    """Write down the answer to the key that this transaction holds."""
    headers = orjson.dumps(dict(answer.headers)).decode()
    parameters = {"id": key_id, "status": answer.status, "headers": headers, "body": answer.body}
    await connection.execute(query("keep_idempotent_answer"), parameters, prepare=True)


async def _limit_lock_wait(connection: Connection, limit: str) -> None:
    await connection.execute(query("limit_lock_wait"), {"limit": limit}, prepare=True)
