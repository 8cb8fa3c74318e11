"""Job ids, and the slot of each on the ring.

Invariant: `slot_of` never changes, in no version: the slot is stored on the row, and two processes that disagreed
would both or neither own a job. Golden values are tested. Job ids are UUIDv7 (RFC 9562 §5.7), made by the server and
never inserted twice, so that ids order by creation.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final
from uuid import UUID

SLOT_COUNT: Final = 4096
"""Points on the ring. Fixed at install: another value would remap every stored slot."""


def slot_of(job_id: UUID) -> int:
    """The slot of a job, 0 to 4095: BLAKE2b with 8 bytes of digest over the id's 16 bytes, big-endian, mod 4096."""
    return int.from_bytes(blake2b(job_id.bytes, digest_size=8).digest(), "big") % SLOT_COUNT


def new_job_id(at: datetime) -> UUID:
    """A UUIDv7 whose first 48 bits are the milliseconds of `at` and whose other bits are random."""
    milliseconds = int(at.timestamp() * 1000)
    random = secrets.randbits(74)
    return UUID(
        int=(milliseconds << 80) | (0x7 << 76) | ((random >> 62) << 64) | (0b10 << 62) | (random & ((1 << 62) - 1))
    )


def created_at_of(job_id: UUID) -> datetime:
    """When a job id was made, to the millisecond."""
    return datetime.fromtimestamp((job_id.int >> 80) / 1000, UTC)
