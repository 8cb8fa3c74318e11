"""Claims alone: many workers' stores that claim as fast as they can, and run nothing.

Invariant: each claim is the worker's own statement on a connection of its own, as a worker sends it (bounds, custom
plans); nothing is renewed or completed, so what is claimed stays claimed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Sequence
from typing import Any, NamedTuple

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.models import Arc
from ringcron.store.bounds import near
from ringcron.store.worker import WorkerStore

LEASE_SECONDS = 3600.0
STATEMENT_SECONDS = 60.0


class ClaimPlan(NamedTuple):
    """What one claimer does: claim batches of `batch` from `arc` until `empty` claims in a row brought nothing.

    `most`: give up after so many claims. `pause_seconds`: between claims.
    """

    url: str
    name: str
    arc: tuple[int, int]
    handler: str
    batch: int
    most: int
    empty: int = 1


class Claimed(NamedTuple):
    """What one claimer got: (began, took, jobs) of each claim, on the elapsed clock."""

    name: str
    claims: list[tuple[float, float, int]]
    ids: list[bytes]


def claim_all(plans: Sequence[ClaimPlan], *, processes: int) -> list[Claimed]:
    """Let all claimers run at once, spread over so many processes; they begin together."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        gate = manager.Barrier(processes)
        shares = [(list(plans[index::processes]), gate) for index in range(processes)]
        with context.Pool(processes) as pool:
            return [claimed for part in pool.starmap(_claim_in_process, shares) for claimed in part]


def _claim_in_process(plans: list[ClaimPlan], gate: Any) -> list[Claimed]:
    return asyncio.run(_claim_together(plans, gate))


async def _claim_together(plans: list[ClaimPlan], gate: Any) -> list[Claimed]:
    clock = SystemClock()
    stores = [_store(plan, clock) for plan in plans]
    for store in stores:
        await store.look()  # connected before the clock runs
    await asyncio.to_thread(gate.wait)
    try:
        return await asyncio.gather(*(claim_on(store, plan, clock) for store, plan in zip(stores, plans, strict=True)))
    finally:
        for store in stores:
            await store.close()


def _store(plan: ClaimPlan, clock: SystemClock) -> WorkerStore:
    return WorkerStore(
        plan.url,
        worker_id=f"{plan.name}.00000000",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=LEASE_SECONDS,
        statement_seconds=STATEMENT_SECONDS,
        on_bell=None,
    )


async def claim_on(store: WorkerStore, plan: ClaimPlan, clock: SystemClock) -> Claimed:
    """Claim on this store until there is nothing left."""
    claims: list[tuple[float, float, int]] = []
    ids: list[bytes] = []
    empty = 0
    while empty < plan.empty and len(claims) < plan.most:
        began = clock.elapsed()
        bounds = near(clock.wall())
        got = await store.claim(Arc(lo=plan.arc[0], hi=plan.arc[1]), [plan.handler], batch=plan.batch, bounds=bounds)
        claims.append((began, clock.elapsed() - began, len(got)))
        ids += [claim.id.bytes for claim in got]
        empty = 0 if got else empty + 1
    return Claimed(plan.name, claims, ids)
