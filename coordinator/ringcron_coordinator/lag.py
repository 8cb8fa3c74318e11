"""Lag, counted once a second into the metrics.

Invariant: a slot or a slice without lag has no series; what is shown was true at the last look, and is taken away when
this process no longer looks. Slices are those that the workers report, so that it works without ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from prometheus_client import Gauge

from ringcron import metrics
from ringcron.models import WorkerReport
from ringcron.store.api import ApiStore
from ringcron.store.lag import SlotLag

UNCLAIMABLE_EVERY: Final = 10
"""Every so many looks, jobs whose handler nobody has are counted too: they may be very many."""


class LagReport:
    """Counts lag and shows it."""

    def __init__(self, store: ApiStore) -> None:
        self._store = store
        self._looks = 0
        self._slots = _Series(metrics.SLOT_LAG)
        self._slices = _Series(metrics.SLICE_LAG)
        self._unclaimable = _Series(metrics.UNCLAIMABLE_JOBS)

    async def look(self) -> None:
        """Count once. Raises StoreUnavailable."""
        workers = await self._store.list_workers()
        known = sorted({handler for worker in workers for handler in worker.handlers})
        if self._looks % UNCLAIMABLE_EVERY == 0:
            everything = (await self._store.lag(None)).slots
            self._unclaimable.show(unclaimable(everything, known))
            due = [row for row in everything if row.handler in known]
        else:
            due = list((await self._store.lag(known)).slots)
        self._looks += 1
        metrics.DUE_JOBS.set(sum(row.due for row in due))
        self._slots.show(lag_of_slots(due))
        self._slices.show(lag_of_slices(due, workers))

    def clear(self) -> None:
        """Show nothing any more."""
        metrics.DUE_JOBS.set(0)
        for series in (self._slots, self._slices, self._unclaimable):
            series.show({})


def lag_of_slots(due: Sequence[SlotLag]) -> dict[str, float]:
    """Seconds by slot: the most of any handler."""
    lags: dict[str, float] = {}
    for row in due:
        lags[str(row.slot)] = max(row.lag_seconds, lags.get(str(row.slot), 0.0))
    return lags


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


def unclaimable(due: Sequence[SlotLag], known: Sequence[str]) -> dict[str, float]:
    """Due jobs by handler, of the handlers that are not `known`."""
    counts: dict[str, float] = {}
    for row in due:
        if row.handler not in known:
            counts[row.handler] = counts.get(row.handler, 0) + row.due
    return counts


class _Series:
    """A gauge with one label, of which only the values last shown exist."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._shown: set[str] = set()

    def show(self, values: Mapping[str, float]) -> None:
        for label in self._shown - values.keys():
            self._gauge.remove(label)
        for label, value in values.items():
            self._gauge.labels(label).set(value)
        self._shown = set(values)
