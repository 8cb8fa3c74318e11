"""Which claim comes next: a pure decision from what the last peek saw.

Order: the worker's own arcs, the one with the oldest due row first; then a quarantined job, alone; then help, for rows
anywhere on the ring that are overdue by the help delay, whose owner is by then saturated or gone: the helper meets
nobody. Invariant: `next_wake` is never later than the moment at which `due_turns` would first return something.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ringcron.models import Arc, Holding
from ringcron.ring import WHOLE_RING
from ringcron.store.answers import Head, Peek

UNPROVEN_AFTER_SECONDS: Final = 0.3
"""The longest that a worker that cannot prove that it owns its arcs waits before it claims in them."""
LASTS: Final = (0.75, 1.25)
"""How long a peek is good for, in polls: from, to."""
LASTS_HEARING: Final = (1.2, 1.8)
"""The same while the bell is heard, which tells of all that falls due within bell.SOON_SECONDS: a pool that has nothing
to do then asks less than once a second per worker."""
FAIR_EVERY: Final = 8
"""Every so many claims one is a fairness turn, also under overload."""
FAIR_AFTER_LEASES: Final = 2


class TurnKind(StrEnum):
    """Why a claim is made; label of the claim metrics."""

    OWN = "own"
    HELP = "help"
    FAIR = "fair"
    SOLO = "solo"


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One claim to make."""

    kind: TurnKind
    arc: Arc
    handlers: tuple[str, ...]
    overdue_seconds: float = 0.0


def own_arcs(holding: Holding, handlers: tuple[str, ...]) -> tuple[tuple[str, Arc], ...]:
    """Every (handler, arc) that the worker owns and can run."""
    return tuple(
        (handler, arc)
        for held in holding.slices
        for arc in held.arcs
        for handler in held.handlers
        if handler in handlers
    )


def owns_everything(holding: Holding, handlers: tuple[str, ...]) -> bool:
    """Whether no other worker has anything that this one could help with."""
    whole = {handler for handler, arc in own_arcs(holding, handlers) if arc == WHOLE_RING}
    return holding.proven and whole >= set(handlers)


def due_turns(
    peek: Peek,
    *,
    age_seconds: float,
    proven: bool,
    help_after_seconds: float,
    solo_free: bool,
    handlers: tuple[str, ...],
) -> list[Turn]:
    """The claims worth making now, `age_seconds` after the peek was answered, in order.

    A worker that cannot prove that it owns its arcs claims them with the helper's delay.
    """
    own_delay = _own_delay(proven, help_after_seconds)
    turns: list[Turn] = []
    by_arc: dict[Arc, list[str]] = {}
    for head in peek.heads:
        if _overdue(head, age_seconds) >= own_delay:
            by_arc.setdefault(head.arc, []).append(head.handler)
    turns.extend(
        Turn(kind=TurnKind.OWN, arc=arc, handlers=tuple(names), overdue_seconds=own_delay)
        for arc, names in by_arc.items()
    )
    if solo_free and peek.solo_wait_seconds is not None and peek.solo_wait_seconds <= age_seconds:
        turns.append(Turn(kind=TurnKind.SOLO, arc=WHOLE_RING, handlers=handlers))
    behind = tuple(head.handler for head in peek.ring if _overdue(head, age_seconds) >= help_after_seconds)
    if behind:
        turns.append(Turn(kind=TurnKind.HELP, arc=WHOLE_RING, handlers=behind, overdue_seconds=help_after_seconds))
    return turns


def fair_turn(handlers: tuple[str, ...], lease_seconds: float) -> Turn:
    """The globally oldest rows, overdue by more than two leases: so every due row starts in bounded time."""
    return Turn(
        kind=TurnKind.FAIR, arc=WHOLE_RING, handlers=handlers, overdue_seconds=FAIR_AFTER_LEASES * lease_seconds
    )


def next_wake(
    peek: Peek, *, age_seconds: float, proven: bool, help_after_seconds: float, solo_free: bool, poll_seconds: float
) -> float:
    """Seconds to sleep: until the first thing that the peek foresaw, `poll_seconds` at most, never negative."""
    own_delay = _own_delay(proven, help_after_seconds)
    waits = [poll_seconds]
    if peek.heads:
        waits.append(peek.heads[0].wait_seconds + own_delay - age_seconds)
    if peek.ring:
        waits.append(peek.ring[0].wait_seconds + help_after_seconds - age_seconds)
    if solo_free and peek.solo_wait_seconds is not None:
        waits.append(peek.solo_wait_seconds - age_seconds)
    return max(0.0, min(waits))


def _own_delay(proven: bool, help_after_seconds: float) -> float:
    return 0.0 if proven else min(help_after_seconds, UNPROVEN_AFTER_SECONDS)


def _overdue(head: Head, age_seconds: float) -> float:
    return age_seconds - head.wait_seconds
