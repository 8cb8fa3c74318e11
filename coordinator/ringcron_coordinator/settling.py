"""When to act: how long membership must have been quiet, and how long an acknowledgement is waited for.

Both are told the time (elapsed seconds) and decide nothing but "now or later". They keep the number of versions small:
a mass join ends in one plan, and a plan costs at most three versions: revoke, grant what has been acknowledged, grant
the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import Final

from ringcron.assignment import Revocation
from ringcron.members import Incarnation

EARLY_SHARE: Final = 0.2
"""After this part of the patience, what has been acknowledged is granted although one owner still keeps us waiting."""

_NOTHING: Final = object()


class Quiet:
    """Collects changes until there was none for `quiet_seconds`, or the first is `cap_seconds` old."""

    def __init__(self, quiet_seconds: float, cap_seconds: float) -> None:
        self._quiet_seconds = quiet_seconds
        self._cap_seconds = cap_seconds
        self._acted_on: Hashable = _NOTHING
        self._seen: Hashable = _NOTHING
        self._first = 0.0
        self._last = 0.0

    def see(self, state: Hashable, now: float) -> None:
        """Note what stands at `now`."""
        if state == self._seen:
            return
        if self._seen == self._acted_on:
            self._first = now
        self._seen, self._last = state, now

    def due(self) -> float | None:
        """When the changes may be acted on if no other comes; None where there is none to act on."""
        if self._seen == self._acted_on:
            return None
        return min(self._last + self._quiet_seconds, self._first + self._cap_seconds)

    def act(self) -> None:
        """Note that what was last seen has been acted on."""
        self._acted_on = self._seen


class Patience:
    """Waits for acknowledgements, `ack_seconds` for each revocation."""

    def __init__(self, ack_seconds: float) -> None:
        self._ack_seconds = ack_seconds
        self._missing: Mapping[Revocation, Set[Incarnation]] = {}
        self._began: dict[Revocation, float] = {}
        self._granted_early: set[int] = set()

    def see(self, missing: Mapping[Revocation, Set[Incarnation]], now: float) -> None:
        """Note the revocations under way at `now`, and whose acknowledgement each still lacks."""
        self._missing = missing
        self._began = {revocation: self._began.get(revocation, now) for revocation in missing}
        self._granted_early &= {revocation.since for revocation in missing}

    def missing(self, revocation: Revocation) -> Set[Incarnation]:
        """Whose acknowledgement of a revocation under way is missing."""
        return self._missing[revocation]

    def passed_over(self, now: float) -> frozenset[Revocation]:
        """Revocations that are waited for no longer."""
        return frozenset(
            revocation
            for revocation, holders in self._missing.items()
            if holders and now >= self._began[revocation] + self._ack_seconds
        )

    def due(self) -> float | None:
        """When slots may be granted if no other acknowledgement comes; None where nothing is in transit."""
        if not self._missing:
            return None
        waiting = [self._began[revocation] for revocation, holders in self._missing.items() if holders]
        if not waiting:
            return min(self._began.values())
        ready = {revocation.since for revocation, holders in self._missing.items() if not holders}
        early = bool(ready - self._granted_early)
        return min(waiting) + self._ack_seconds * (EARLY_SHARE if early else 1)

    def act(self) -> None:
        """Note that what could be granted has been granted."""
        self._granted_early |= {revocation.since for revocation in self._missing}
