"""One history: a plan played from its start to its end, or to the first broken promise."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from tests.simulation import faults
from tests.simulation.liveness import BOUND_SECONDS, TAKEOVER_SECONDS, lacking, unowned
from tests.simulation.plan import Fault, Plan, is_overloaded
from tests.simulation.programs import start_coordinator, start_worker
from tests.simulation.referee import Violation
from tests.simulation.world import Entry, World

LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """How a plan ended. `settled_seconds`: after the last fault everything was well again (liveness)."""

    plan: Plan
    violation: Violation | None
    entries: tuple[Entry, ...]
    counts: dict[str, int]
    settled_seconds: float | None = None

    @property
    def fingerprint(self) -> str:
        """The same for two histories that are the same."""
        return blake2b("\n".join(map(str, self.entries)).encode(), digest_size=8).hexdigest()


def play(plan: Plan) -> Verdict:
    """Play a plan. What breaks in the simulation itself is raised."""
    before = random.getstate()
    random.seed(f"programs {plan.seed}")
    world = World(plan)
    try:
        return _play(world, plan)
    finally:
        world.loop.close()
        random.setstate(before)


def _play(world: World, plan: Plan) -> Verdict:
    world.start_worker, world.start_coordinator = start_worker, start_coordinator
    for seat in (*plan.coordinators, *(name for name, _, _ in plan.workers)):
        world.seats[seat] = None
        world.loop.after(world.random.choice((0.0, 0.0, 0.7)), world.start, seat)
    for job in plan.jobs:
        world.loop.after(job.inserted_at, world.insert, job)
    for fault in plan.faults:
        faults.schedule(world, fault)
    settled = None
    if plan.mode == "safety":
        _run(world, plan.end)
    else:
        _run(world, plan.quiet_at)
        settled = _settle(world, plan.quiet_at)
    if world.violation is None:
        world.referee.check_ledger()
    return Verdict(
        plan=plan,
        violation=world.violation,
        entries=tuple(world.entries),
        counts=dict(world.referee.counts),
        settled_seconds=settled,
    )


def _run(world: World, until: float) -> None:
    world.loop.run_until(until)
    if world.broken is not None:
        raise world.broken


def _settle(world: World, mended_at: float) -> float | None:
    """Everything is well again within the bound."""
    if world.violation is not None:
        return None
    faults.mend(world)
    owned = False
    while world.violation is None:
        _run(world, world.loop.now + LOOK_SECONDS)
        faults.supervise(world)
        seconds = world.loop.now - mended_at
        owned = owned or unowned(world) is None
        lack = lacking(world, mended_at)
        if lack is None:
            return seconds
        if seconds > BOUND_SECONDS or (not owned and seconds > TAKEOVER_SECONDS):
            world.referee.violated("liveness", f"{seconds:.0f} s after the last fault {lack}")
    return None


def _fails_alike(plan: Plan, promise: str) -> bool:
    if plan.mode == "liveness" and is_overloaded(plan.workers, plan.jobs):
        return False
    violation = play(plan).violation
    return violation is not None and violation.promise == promise


def shortened(verdict: Verdict) -> Verdict:
    """The same failure with as few faults, jobs, workers and coordinators as still bring it about."""
    assert verdict.violation is not None
    plan, promise = verdict.plan, verdict.violation.promise
    for field in ("faults", "jobs", "coordinators", "workers"):
        for one in getattr(plan, field)[::-1]:
            fewer = tuple(other for other in getattr(plan, field) if other is not one)
            trial = _with(plan, field, fewer)
            if (fewer or field in ("faults", "jobs")) and _fails_alike(trial, promise):
                plan = trial
    return play(plan)


def _with(plan: Plan, field: str, value: tuple[object, ...]) -> Plan:
    if field in ("coordinators", "workers"):
        names = {one if isinstance(one, str) else one[0] for one in value}  # type: ignore[index]
        kept = tuple(fault for fault in plan.faults if _stands(fault, field, names))
        plan = dataclasses.replace(plan, faults=kept)
    return dataclasses.replace(plan, **{field: value})  # type: ignore[arg-type]


def _stands(fault: Fault, field: str, names: set[str]) -> bool:
    return not fault.target.startswith(field[0]) or fault.target in names
