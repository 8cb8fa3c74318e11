"""Jobs to put into the table: the ones that a run is about, and far-future ones beside them.

Invariant: rows are as the API would store them: ids are UUIDv7, slots are the hash of the id. (Only where a test asks
for one slot are they not.) They come by COPY, so that making them takes no part in what is measured.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final, NamedTuple
from uuid import UUID

from loadtest.database import Database
from loadtest.progress import Progress
from ringcron.slots import SLOT_COUNT, new_job_id, slot_of

BALLAST_FROM: Final = timedelta(hours=6)
"""No ballast is due while a run may still be going."""
BALLAST_OVER: Final = timedelta(days=365)
CHUNK: Final = 10_000
SAMPLED: Final = 5000
"""Ids of ballast that are remembered, about."""


class DueJob(NamedTuple):
    """A one-off of a run."""

    id: UUID
    slot: int
    due_at: datetime


def due_jobs(dues: Sequence[datetime], *, created_at: datetime, slot: int | None = None) -> list[DueJob]:
    """One job for each due instant. `slot` None: by the hash of its id, as everywhere."""
    jobs = []
    for due_at in dues:
        job_id = new_job_id(created_at)
        jobs.append(DueJob(job_id, slot_of(job_id) if slot is None else slot, due_at))
    return jobs


def insert_jobs(
    database: Database, jobs: Sequence[DueJob], *, handler: str, created_at: datetime, payload: Mapping[str, float]
) -> None:
    """Store them in one COPY. `payload` says how long each takes to run (see `loadtest.handlers`)."""
    text = json.dumps(payload)
    lines = (_line(str(job.id), job.slot, job.due_at.isoformat(), handler, created_at, text) for job in jobs)
    database.copy("copy_one_offs", ["".join(lines)])


def insert_ballast(database: Database, count: int, *, handler: str, progress: Progress) -> list[UUID]:
    """Store `count` jobs that are due over the year from six hours ahead on, and have the tables analysed.

    Returns the ids of some of them, spread over all.
    """
    some: list[UUID] = []
    if count:
        now = database.now()
        database.copy("copy_one_offs", _ballast(count, now, handler, progress, some))
        # Not where there is none: PostgreSQL would take empty days for empty for good, and workers plan by that.
        database.run("analyze_jobs")
    return some


def _ballast(count: int, now: datetime, handler: str, progress: Progress, some: list[UUID]) -> Iterator[str]:
    every = max(1, count // SAMPLED)
    first = now + BALLAST_FROM
    span = int((BALLAST_OVER - BALLAST_FROM).total_seconds())
    prefix = f"{int(now.timestamp() * 1000):012x}"
    for begin in range(0, count, CHUNK):
        size = min(CHUNK, count - begin)
        noise = secrets.token_bytes(10 * size)
        lines = []
        for index in range(size):
            noise_hex = noise[10 * index : 10 * index + 10].hex()
            # UUIDv7: 48 bits of time, version, 12 random bits, variant, 62 random bits.
            hexadecimal = f"{prefix}7{noise_hex[:3]}8{noise_hex[3:18]}"
            digest = blake2b(bytes.fromhex(hexadecimal), digest_size=8).digest()
            slot = int.from_bytes(digest, "big") % SLOT_COUNT
            due = (first + timedelta(seconds=random.random() * span)).isoformat()
            lines.append(_line(hexadecimal, slot, due, handler, now, "{}"))
            if (begin + index) % every == 0:
                some.append(UUID(hexadecimal))
        yield "".join(lines)
        progress.count("far-future jobs stored", begin + size, count)


def _line(job_id: str, slot: int, due: str, handler: str, created_at: datetime, payload: str) -> str:
    return (
        f"{job_id}\t{due}\t{slot}\tdue\t{handler}\t{due}\t{created_at}\t{due}\t{payload}\t{created_at}\t{created_at}\n"
    )
