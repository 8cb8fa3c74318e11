"""Who watches a history and names what must never happen.

Invariant: the referee sees the truth (true time, every row, every process) and takes nobody's word. What it finds ends
the history at that instant. The names of its findings are those of `faults.md` §8 where there is one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import orjson

from ringcron.assignment import decode
from ringcron.errors import BadAssignment
from ringcron.models import PARKED, Slice
from ringcron.schedule import parse_schedule
from tests.simulation.database import Row
from tests.simulation.plan import SLOTS
from tests.simulation.process import Process
from tests.simulation.zookeeper import Node, SessionEntry

_EDGES: Final = {
    "claim": {("due", "claimed")},
    "renew": {("claimed", "claimed")},
    "settle": {("claimed", "claimed"), ("claimed", "due"), ("claimed", "done")},
    "complete": {("claimed", "due"), ("claimed", "done"), ("claimed", "dead"), ("claimed", "cancelled")},
    "reap": {("claimed", "due"), ("claimed", "dead"), ("claimed", "cancelled")},
    "release": {("claimed", "due")},
}
_FROM_SCHEDULE: Final = frozenset({"schedule", "catchup", "buffer"})
_MICROSECOND: Final = timedelta(microseconds=1)


class Violation(Exception):
    """A promise is broken. `subject` is the job, slot or process that it is about."""

    def __init__(self, promise: str, text: str, subject: str = "") -> None:
        self.promise = promise
        self.subject = subject
        super().__init__(f"{promise}: {text}")


@dataclass(slots=True, eq=False)
class ActiveRun:
    """A handler that is at work."""

    process: Process
    job_id: UUID
    generation: int

    def trusted(self) -> bool:
        """Whether its worker believes in its lease now."""
        held = self.process.body._leases.get(self.job_id, self.generation) if self.process.alive else None
        return held is not None and self.process.elapsed() < held.control.trust_until


@dataclass(slots=True)
class Referee:
    """Of one history."""

    world: Any
    closed: dict[tuple[UUID, int], str] = field(default_factory=dict)
    """How each claim ended."""
    claimed_at: dict[UUID, float] = field(default_factory=dict)
    """When (true time) each job was last claimed."""
    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _active: defaultdict[UUID, list[ActiveRun]] = field(default_factory=lambda: defaultdict(list))
    _masks: dict[tuple[Slice, ...], dict[str, int]] = field(default_factory=dict)
    _published: int = 0

    def violated(self, promise: str, text: str, subject: object = "") -> None:
        self.world.violated(Violation(promise, text, str(subject)))

    # --- rows ---

    def changed(self, before: Row | None, after: Row, statement: str, owner: str | None) -> None:
        if before is None:
            return
        kind, _, written = statement.partition(" ")
        token = (before.id, before.lease_generation)
        self.counts[kind] += 1
        if kind != "renew":
            self.world.trace(kind, owner, f"g{after.lease_generation} {before.state}→{after.state}", before.id)
        if (before.state, after.state) not in _EDGES[kind]:
            self.violated("I14 only legal edges", f"{kind}: {before.state} → {after.state}", before.id)
        leased = after.lease_owner is not None and after.lease_until is not None and after.claimed_at is not None
        if leased != (after.state == "claimed") or (after.state == "due" and after.next_run_at >= PARKED):
            self.violated("I15 a live row always has a deadline", f"{kind} left {after}", before.id)
        if kind == "claim":
            self.claimed_at[before.id] = self.world.loop.now
            if after.lease_generation <= before.lease_generation:
                self.violated("I1 generations grow", f"{before.lease_generation} → {after.lease_generation}", before.id)
            return
        if after.lease_generation != before.lease_generation:
            self.violated("I1 generations grow only at claims", kind, before.id)
        if before.lease_owner != owner or (written and int(written) != before.lease_generation):
            self.violated(
                "I3 no stale write is accepted",
                f"{statement} by {owner}; the row is {before.lease_owner}'s, generation {before.lease_generation}",
                before.id,
            )
        if after.state == "claimed":
            return
        if token in self.closed:
            self.violated("I8 a claim ends once", f"{kind} after {self.closed[token]}", before.id)
        self.closed[token] = kind
        if kind in ("reap", "release"):
            for run in self._active[before.id]:
                if run.generation == before.lease_generation and run.process.alive and run.trusted():
                    self.violated(
                        "I2 nobody loses a lease that he may trust in",
                        f"{kind} of a run in {run.process.id}",
                        before.id,
                    )

    # --- runs ---

    def begins(self, process: Process, job_id: UUID, generation: int) -> ActiveRun:
        run = ActiveRun(process, job_id, generation)
        active = self._active[job_id]
        active[:] = [other for other in active if other.process.alive]
        self.counts["begin"] += 1
        self.world.trace("begin", process.id, f"g{generation}", job_id)
        for other in active:
            if other.trusted():
                self.violated(
                    "I4 no two runs of a job at the same time within trust",
                    f"g{generation} in {process.id} while g{other.generation} is trusted in {other.process.id}",
                    job_id,
                )
        active.append(run)
        return run

    def ends(self, run: ActiveRun) -> None:
        if run in self._active[run.job_id]:
            self._active[run.job_id].remove(run)
            self.world.trace("end", run.process.id, f"g{run.generation}", run.job_id)

    # --- slots ---

    def mask(self, slices: tuple[Slice, ...]) -> dict[str, int]:
        """The slots of each handler, as bits."""
        found = self._masks.get(slices)
        if found is None:
            found = {}
            for part in slices:
                bits = sum(((1 << len(arc)) - 1) << arc.lo for arc in part.arcs)
                for handler in part.handlers:
                    found[handler] = found.get(handler, 0) | bits
            self._masks[slices] = found
        return found

    def holders_changed(self) -> None:
        """No two workers believe at the same time that a slot is theirs for certain.

        Whose session was ended by hand before its time, or whose node was deleted, cannot know it before he looks.
        """
        taken: dict[str, list[tuple[int, Process]]] = defaultdict(list)
        for process in self.world.living_workers():
            holder = process.holder
            if holder is None or not holder._slices or not holder._proven():
                continue
            if process.true_time(holder._followed_at) <= self.world.robbed_at.get(process.id, -1.0):
                continue
            for handler, bits in self.mask(holder._slices).items():
                for others, other in taken[handler]:
                    if bits & others:
                        slot = (bits & others).bit_length() - 1
                        self.violated(
                            "I12 one proven holder of a slot",
                            f"slot {slot} of {handler!r}: {other.id} at {other.holder._applied.epoch} and "
                            f"{process.id} at {holder._applied.epoch}",
                            "slots",
                        )
                taken[handler].append((bits, process))

    def wrote(self, path: str, before: Node | None, after: Node | None, who: Any) -> None:
        """Something was written in ZooKeeper."""
        if path != "/assignment" or after is None or not isinstance(who, SessionEntry):
            return
        assignment = decode(after.data, SLOTS)
        self.counts["publish"] += 1
        moving = sum(len(arc) for ring in assignment.rings for arc, cell in ring.arcs if cell.since)
        self.world.trace("publish", assignment.leader, f"epoch {assignment.epoch}, {moving} in transit", "slots")
        tree = self.world.zookeeper.nodes
        contenders = sorted((name for name in tree if name.startswith("/leader/")), key=lambda name: name[-10:])
        if not contenders or tree[contenders[0]].owner != who.id:
            self.violated("I13 only the leader's writes are accepted", f"{assignment.leader} wrote", "slots")
        if before is not None:
            try:
                old = decode(before.data, SLOTS).epoch
            except BadAssignment:
                return
            if assignment.epoch <= old:
                self.violated("I13 epochs rise", f"{old} → {assignment.epoch}", "slots")

    # --- the end of a history ---

    def check_ledger(self) -> None:
        """No job is lost, and every tick that was decided was run once or skipped once."""
        database = self.world.database
        runs, skips = defaultdict(list), defaultdict(list)
        for run in database.runs:
            runs[run.job_id].append(run)
        for skip in database.skips:
            skips[skip.job_id].append(skip)
        if len(database.jobs) != len(self.world.inserted):
            self.violated(
                "I16 no job is lost", f"{len(self.world.inserted)} were created, {len(database.jobs)} are there"
            )
        for row in database.jobs.values():
            accepted = [run for run in runs[row.id] if run.outcome not in ("lost", "interrupted")]
            if row.state == "done" and row.schedule is None and not accepted:
                self.violated("I8 done means run", f"{row}", row.id)
            if row.schedule is not None:
                self._check_ticks(row, runs[row.id], skips[row.id])

    def _check_ticks(self, row: Row, runs: list[Any], skips: list[Any]) -> None:
        ticks = parse_schedule(orjson.loads(row.schedule or "null"))
        fate: dict[Any, str] = {}
        for run in runs:
            if run.cause in _FROM_SCHEDULE:
                fate[run.scheduled_for] = "run"
                if ticks.latest(run.scheduled_for - _MICROSECOND, run.scheduled_for) != run.scheduled_for:
                    self.violated("I11 only ticks are run", f"{run.scheduled_for}", row.id)
        for skip in skips:
            found = ticks.upcoming(skip.first - _MICROSECOND, skip.count)
            if (found[0], found[-1]) != (skip.first, skip.last):
                self.violated("I10 a skip counts its ticks", f"{skip}", row.id)
            for tick in found:
                if tick in fate:
                    self.violated("I10 a tick is run or skipped, once", f"{tick} {fate[tick]} and {skip}", row.id)
                fate[tick] = "skip"
        for tick in row.kept or ():
            if tick in fate:
                self.violated("I10 a tick is run or skipped, once", f"{tick} {fate[tick]} and kept", row.id)
        until = row.decided_until
        if row.cause == "schedule" and row.state in ("due", "claimed"):
            until = min(until, row.scheduled_for - _MICROSECOND)  # the first claim of it is still to settle the rest
        first = ticks.next_after(self.world.base - _MICROSECOND)
        if first is None or first > until:
            return
        for tick in ticks.upcoming(first - _MICROSECOND, ticks.count(first - _MICROSECOND, until)):
            current = tick == row.scheduled_for and row.state in ("due", "claimed", "dead")
            if tick not in fate and tick not in (row.kept or ()) and not current:
                self.violated("I10 every tick is run or skipped", f"{tick}; decided until {row.decided_until}", row.id)
