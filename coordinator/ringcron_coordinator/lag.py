"""Lag, once a second into the metrics: from the count that all processes share (`ringcron.store.snapshot`).

Invariant: a slot or a slice without lag has no series; what is shown was true at the last look, and is taken away when
this process no longer looks. Slices are those that the workers report, so that it works without ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringcron import metrics
from ringcron.models import WorkerReport
from ringcron.store.api import ApiStore
from ringcron.store.lag import SlotLag


class LagReport:
    """Counts lag and shows it."""

    def __init__(self, store: ApiStore) -> None:
        self._store = store

    async def look(self) -> None:
        """Show what was counted last; count, where that is a second old. Raises StoreUnavailable."""
        workers = await self._store.list_workers()
        known = sorted({handler for worker in workers for handler in worker.handlers})
        snapshot = await self._store.snapshot(known)
        # With no worker at all the shared count is of everything that waits: of that nothing is lag.
        due = [row for row in snapshot.lag.slots if row.handler in known]
        metrics.UNCLAIMABLE_JOBS.show({one.handler: float(one.due) for one in snapshot.waiting})
        metrics.DUE_JOBS.set(sum(row.due for row in due))
        metrics.SLOT_LAG.show(lag_of_slots(due))
        metrics.SLOT_DUE_JOBS.show(due_of_slots(due))
        metrics.SLICE_LAG.show(lag_of_slices(due, workers))

    def clear(self) -> None:
        """Show nothing any more."""
        for metric in (
            metrics.DUE_JOBS,
            metrics.SLOT_LAG,
            metrics.SLOT_DUE_JOBS,
            metrics.SLICE_LAG,
            metrics.UNCLAIMABLE_JOBS,
        ):
            metric.clear()


def lag_of_slots(due: Sequence[SlotLag]) -> dict[str, float]:
    """Seconds by slot: the most of any handler."""
    lags: dict[str, float] = {}
    for row in due:
        lags[str(row.slot)] = max(row.lag_seconds, lags.get(str(row.slot), 0.0))
    return lags


def due_of_slots(due: Sequence[SlotLag]) -> dict[str, float]:
    """Due jobs by slot, of all handlers."""
    counts: dict[str, float] = {}
    for row in due:
        counts[str(row.slot)] = counts.get(str(row.slot), 0) + row.due
    return counts


def lag_of_slices(due: Sequence[SlotLag], workers: Sequence[WorkerReport]) -> dict[str, float]:
    """Seconds by worker's name: the most of any slot and handler in its slices."""
    by_handler: dict[str, list[SlotLag]] = {}
    for row in due:
        by_handler.setdefault(row.handler, []).append(row)
    lags: dict[str, float] = {}
    for worker in workers:
        for part in worker.slices:
            rows = [row for handler in part.handlers for row in by_handler.get(handler, ())]
            for row in rows:
                if any(arc.lo <= row.slot <= arc.hi for arc in part.arcs):
                    lags[worker.name] = max(row.lag_seconds, lags.get(worker.name, 0.0))
    return lags
