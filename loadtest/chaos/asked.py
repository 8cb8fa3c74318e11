"""What a chaos run asked for, and the reference ticks of it.

Invariant: plain arithmetic, nothing of the product's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

ANCHOR: Final = 1767225600.0
"""2026-01-01, a whole minute: ticks are so many periods after it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What one name stands for. Instants in Unix seconds of the database's clock."""

    name: str
    run_at: float | None = None
    every: int | None = None
    start: float = 0.0
    end: float = 0.0
    moved: bool = False
    """Its instant was changed afterwards: its ticks are not known."""

    def ticks(self, created_at: float) -> tuple[float, ...]:
        """The ticks from its creation to its end; none of a one-off."""
        if self.every is None:
            return ()
        number = math.ceil((self.start - ANCHOR) / self.every)
        ticks = []
        while (tick := ANCHOR + number * float(self.every)) <= self.end:
            if tick > created_at:
                ticks.append(tick)
            number += 1
        return tuple(ticks)


def wire(at: float) -> str:
    """An instant as the API takes it."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
