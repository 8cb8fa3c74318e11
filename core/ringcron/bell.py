"""The bell: a hint from the API that something is due sooner than a worker would look, or that a run is to stop.

Invariant: only a hint. The poll is the promise for jobs, and every renewal brings a requested cancel; so a bell that is
lost, doubled or late changes nothing but the moment. Behind a transaction pooler none is heard (`RINGCRON_BELL=poll`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import orjson

from ringcron.models import Holding

SOON_SECONDS: Final = 2.0
"""A job due within this time rings: more than the longest sleep between two looks of a worker, by default."""
SLOTS_NAMED: Final = 1000
"""A message names so many slots at most; more of them are all. PostgreSQL takes 8,000 bytes."""
CANCELS_NAMED: Final = 40


@dataclass(frozen=True, slots=True)
class Bell:
    """What one message says. `slots` None: any slot."""

    slots: frozenset[int] | None = frozenset()
    cancels: frozenset[tuple[UUID, int]] = field(default=frozenset())

    def concerns(self, holding: Holding) -> bool:
        """Whether a worker that holds this should look. One that cannot prove what it owns looks at every bell."""
        if self.slots is None or not holding.proven:
            return self.slots is None or bool(self.slots)
        return any(arc.lo <= slot <= arc.hi for held in holding.slices for arc in held.arcs for slot in self.slots)


def encode_bells(slots: Iterable[int], cancels: Iterable[tuple[UUID, int]]) -> list[str]:
    """The messages that say this: usually one."""
    named = sorted(set(slots))
    asked = sorted(set(cancels))
    messages = []
    while named or asked:
        batch, asked = asked[:CANCELS_NAMED], asked[CANCELS_NAMED:]
        message = {
            "slots": None if len(named) > SLOTS_NAMED else named,
            "cancels": [[str(job_id), generation] for job_id, generation in batch],
        }
        messages.append(orjson.dumps(message).decode())
        named = []
    return messages


def decode_bell(text: str) -> Bell:
    """What a message says. One that cannot be read (another version's) means: look."""
    try:
        message = orjson.loads(text)
        slots = message["slots"]
        return Bell(
            slots=None if slots is None else frozenset(int(slot) for slot in slots),
            cancels=frozenset((UUID(job_id), int(generation)) for job_id, generation in message["cancels"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return Bell(slots=None)
