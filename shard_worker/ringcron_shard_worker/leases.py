"""The leases that this worker holds, and how much room it has.

Invariant: a claim is in here from before its run may start until its completion is written or its lease is known to be
lost. What PostgreSQL says this worker holds and what is not in here is handed back. PostgreSQL is authoritative.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ringcron.clock import Clock
from ringcron.models import Claim
from ringcron_shard_worker.execution import RunControl

UNWRITTEN_LIMIT: Final = 1000
"""While so many completions wait to be written, nothing more is claimed."""


@dataclass(kw_only=True, slots=True)
class Held:
    """One lease. `running` is False once the handler has ended and the completion waits to be written."""

    claim: Claim
    control: RunControl
    since: float  # elapsed seconds at the claim
    running: bool = True


class Leases:
    """Every lease that is held."""

    def __init__(self, capacity: int, clock: Clock, *, lease_seconds: float) -> None:
        self.capacity = capacity
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._held: dict[str, Held] = {}  # by run id
        self._running = 0
        self._solo: set[str] = set()
        self._room = asyncio.Event()
        self._room.set()

    def add(self, claim: Claim, control: RunControl) -> Held:
        """A claim was made: it takes a place at once."""
        held = Held(claim=claim, control=control, since=self._clock.elapsed())
        self._held[claim.run_id] = held
        self._running += 1
        if claim.solo:
            self._solo.add(claim.run_id)
        self._tell_room()
        return held

    def ended(self, claim: Claim) -> None:
        """The handler has ended: its place is free, its lease is still held until the completion is written."""
        held = self._held.get(claim.run_id)
        if held is not None and held.running:
            self._vacate(held)

    def drop(self, claim: Claim) -> None:
        """The completion is written, or the lease is lost or handed back."""
        held = self._held.pop(claim.run_id, None)
        if held is not None and held.running:
            self._vacate(held)
        else:
            self._tell_room()

    def get(self, job_id: UUID, generation: int) -> Held | None:
        return self._held.get(f"{job_id}.{generation}")

    def all(self) -> list[Held]:
        return list(self._held.values())

    def claims(self) -> list[Claim]:
        return [held.claim for held in self._held.values()]

    @property
    def running(self) -> int:
        """Runs whose handler has not ended."""
        return self._running

    @property
    def solo_running(self) -> bool:
        """Whether a quarantined job has been running here for less than a lease. One that has not brought its worker
        down by then makes room for the next: a long innocent must not keep the others waiting."""
        since = self._clock.elapsed() - self._lease_seconds
        return any(self._held[run_id].since > since for run_id in self._solo)

    def oldest_runs(self) -> dict[str, float]:
        """Seconds since the oldest run in progress of each handler was claimed."""
        since: dict[str, float] = {}
        for held in self._held.values():
            if held.running:
                since[held.claim.handler] = min(held.since, since.get(held.claim.handler, held.since))
        now = self._clock.elapsed()
        return {handler: now - begun for handler, begun in since.items()}

    @property
    def empty(self) -> bool:
        return not self._held

    @property
    def free(self) -> int:
        """How many more jobs can start now."""
        if len(self._held) - self._running >= UNWRITTEN_LIMIT:
            return 0
        return self.capacity - self._running

    async def room(self) -> None:
        """Wait until a job can start."""
        await self._room.wait()

    def _vacate(self, held: Held) -> None:
        held.running = False
        self._running -= 1
        self._solo.discard(held.claim.run_id)
        self._tell_room()

    def _tell_room(self) -> None:
        """Whoever waits for room goes on exactly while there is some: let through without, it would spin."""
        if self.free > 0:
            self._room.set()
        else:
            self._room.clear()
