"""What must have come about a bounded time after the last fault: nothing is stuck for ever.

Invariant: the bound is made of the promises' own parts: a session that must end, a plan that must settle, an owner that
is passed over, a reaper that watches for a lease, a lease that lapses, and a fairness turn after two more.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from ringcron.assignment import decode
from tests.simulation import plan as plans
from tests.simulation.plan import SLOTS
from tests.simulation.world import World

TAKEOVER_SECONDS: Final = (
    plans.SESSION_SECONDS + plans.QUIET_CAP_SECONDS + 2 * plans.ACK_SECONDS + 2 * plans.LEASE_SECONDS
)
FAIR_SECONDS: Final = 2 * plans.LEASE_SECONDS
WORK_SECONDS: Final = 60.0
"""What the jobs of a plan may take when the smallest fleet runs them, retries and quarantine included."""
BOUND_SECONDS: Final = TAKEOVER_SECONDS + FAIR_SECONDS + WORK_SECONDS
OVERDUE_SECONDS: Final = 2.0


def lacking(world: World, mended_at: float) -> str | None:
    """What is still missing; None when everything is as it should be."""
    return unowned(world) or _waiting(world, mended_at)


def unowned(world: World) -> str | None:
    """V3, V4: every slot has one proven owner, all of them at the epoch that was published last."""
    node = world.zookeeper.nodes.get("/assignment")
    if node is None:
        return "there is no assignment"
    assignment = decode(node.data, SLOTS)
    if assignment.unowned() or assignment.revocations():
        return f"epoch {assignment.epoch} leaves slots unowned or in transit"
    whole = (1 << SLOTS) - 1
    held: dict[str, int] = {}
    for process in world.living_workers():
        holder = process.holder
        if holder is None:
            return f"{process.id} is only starting"
        if not holder._proven() or holder._applied.epoch != assignment.epoch:
            return f"{process.id} is not proven at epoch {assignment.epoch}"
        for handler, bits in world.referee.mask(holder._slices).items():
            held[handler] = held.get(handler, 0) | bits
    for handler in plans.HANDLERS:
        if held.get(handler) != whole:
            return f"not every slot of {handler!r} is held"
    return None


def _waiting(world: World, mended_at: float) -> str | None:
    """V1, V2, V5: what was due has been run, no lapsed lease is left."""
    now = world.database_now()
    for row in world.database.jobs.values():
        if row.state == "claimed" and row.lease_until is not None and row.lease_until < now:
            return f"the lease of {row.id} has lapsed"
        if row.state in ("claimed", "due") and row.schedule is None:
            return f"{row.id} is still {row.state}"
        if row.state == "due" and _overdue(row.next_run_at, now):
            return f"{row.id} is overdue"
        if row.schedule is not None and row.state != "dead" and not _ran_since(world, row, mended_at):
            return f"{row.id} has not run since the faults ended"
    return None


def _overdue(instant: datetime, now: datetime) -> bool:
    return instant < now - timedelta(seconds=OVERDUE_SECONDS)


def _ran_since(world: World, row: Any, mended_at: float) -> bool:
    return world.referee.claimed_at.get(row.id, -1.0) > mended_at
