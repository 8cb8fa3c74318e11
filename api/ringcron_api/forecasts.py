"""GET /forecast and GET /autoscale: what is coming, when it clears, and the capacity that it needs.

Invariant: bounded and shared: what becomes due is read once for all callers of this process that ask for the same
horizon within a while, and is expanded off the event loop. It comes from the jobs table, from what workers report and
from the lag of the moment, so that it answers also with no coordinator and with no worker, which is when a pool has to
grow from nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from aiohttp import web

from ringcron.clock import Clock
from ringcron.forecast import UNMEASURED_SECONDS, Coming, Stream, desired_capacity, expand, predict
from ringcron.instants import format_instant
from ringcron.models import WorkerReport
from ringcron.store.api import ApiStore
from ringcron.store.forecasting import Ahead
from ringcron_api.forecast_schemas import AutoscaleQuery, ForecastQuery
from ringcron_api.pool_reader import PoolReader, Reading
from ringcron_api.requests import json_answer, query_of

MINUTE: Final = 60
KEPT_HORIZONS: Final = 8
KEPT_SHARE: Final = 1 / 240
"""For how long what was read ahead is kept, as a part of the horizon: 15 s of an hour."""
KEPT_SECONDS: Final = (2.0, 60.0)
SLACK_SECONDS: Final = 5
"""Read beyond the horizon, so that it still reaches far enough when what was read is old."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What is coming to the whole pool, or to one handler's share of it."""

    coming: Coming
    complete: bool
    backlog: int
    """Due and unclaimed jobs."""
    backlog_work: float
    """Seconds of work that wait or run now."""
    mean_seconds: float
    capacity: int


class Forecaster:
    """The forecasts of one API process."""

    def __init__(self, store: ApiStore, pool: PoolReader, clock: Clock) -> None:
        self._store = store
        self._pool = pool
        self._clock = clock
        self._read: OrderedDict[int, tuple[float, asyncio.Task[Ahead]]] = OrderedDict()

    async def outlook(self, seconds: int, *, handler: str | None = None) -> Outlook:
        """The next `seconds`. Raises StoreUnavailable."""
        ahead, reading = await asyncio.gather(self._ahead(seconds), self._pool.reading())
        # What became due by then waits, or runs: it is in the lag.
        start = reading.snapshot.taken_at.replace(microsecond=0) + timedelta(seconds=1)
        means = mean_seconds_of(reading.workers)
        streams = [stream for stream in ahead.streams if handler is None or stream.handler == handler]
        coming = await asyncio.to_thread(expand, streams, start=start, seconds=seconds, mean_seconds=means)
        return outlook_of(coming, reading, streams, means=means, capped=ahead.capped, handler=handler)

    async def _ahead(self, seconds: int) -> Ahead:
        now = self._clock.elapsed()
        at, task = self._read.get(seconds, (0.0, None))
        if task is None or now >= at + kept_for(seconds) or (task.done() and task.exception() is not None):
            task = asyncio.create_task(self._store.ahead(seconds + math.ceil(kept_for(seconds)) + SLACK_SECONDS))
            self._read[seconds] = (now, task)
            while len(self._read) > KEPT_HORIZONS:
                self._read.popitem(last=False)
        self._read.move_to_end(seconds)
        # Shielded: a caller that goes away must not take it from the others.
        return await asyncio.shield(task)


def kept_for(horizon_seconds: int) -> float:
    """How many seconds what was read for a horizon is kept."""
    least, most = KEPT_SECONDS
    return min(max(least, horizon_seconds * KEPT_SHARE), most)


def mean_seconds_of(workers: Iterable[WorkerReport]) -> dict[str, float]:
    """How long a run lasts, by handler, over the workers that have measured it."""
    measured: dict[str, list[float]] = {}
    for worker in workers:
        for handler, seconds in worker.mean_seconds.items():
            measured.setdefault(handler, []).append(seconds)
    return {handler: sum(means) / len(means) for handler, means in measured.items()}


def outlook_of(
    coming: Coming,
    reading: Reading,
    streams: Iterable[Stream],
    *,
    means: Mapping[str, float],
    capped: bool,
    handler: str | None,
) -> Outlook:
    """Put together what is coming and what there is. A worker that drains or is silent has no capacity."""
    waiting: dict[str, int] = {}
    for late in reading.snapshot.lag.slots:
        waiting[late.handler] = waiting.get(late.handler, 0) + late.due
    for unheard in reading.snapshot.waiting:
        waiting.setdefault(unheard.handler, unheard.due)
    if handler is not None:
        waiting = {handler: waiting.get(handler, 0)}
    able = [
        worker
        for worker in reading.workers
        if not worker.silent and not worker.draining and (handler is None or handler in worker.handlers)
    ]
    weights = dict(waiting)
    for stream in streams:
        weights[stream.handler] = weights.get(stream.handler, 0) + stream.jobs
    mean = _mean(weights, means)
    running = sum(worker.running for worker in able)
    return Outlook(
        coming=coming,
        complete=coming.complete and not capped and not reading.snapshot.capped,
        backlog=sum(waiting.values()),
        # A run that is under way is half done, on the average.
        backlog_work=sum(jobs * means.get(name, UNMEASURED_SECONDS) for name, jobs in waiting.items())
        + running * mean / 2,
        mean_seconds=mean,
        capacity=sum(worker.capacity for worker in able),
    )


def _mean(jobs: Mapping[str, int], means: Mapping[str, float]) -> float:
    """The mean duration of these jobs by handler; where there are none, of all that was measured."""
    total = sum(jobs.values())
    if total:
        return sum(count * means.get(handler, UNMEASURED_SECONDS) for handler, count in jobs.items()) / total
    return sum(means.values()) / len(means) if means else UNMEASURED_SECONDS


FORECASTER: Final = web.AppKey("forecaster", Forecaster)


async def show_forecast(request: web.Request) -> web.Response:
    query = query_of(request, ForecastQuery)
    seconds = math.ceil(query.horizon.total_seconds())
    return json_answer(forecast_answer(await request.app[FORECASTER].outlook(seconds, handler=query.handler)))


def forecast_answer(outlook: Outlook) -> dict[str, Any]:
    """As GET /forecast shows it."""
    coming = outlook.coming
    found = predict(coming, backlog_work=outlook.backlog_work, capacity=outlook.capacity)
    due = coming.due
    worst, clears = found.worst_delay_seconds, found.clears_after_seconds
    return {
        "startsAt": format_instant(coming.start),
        "horizonSeconds": len(due),
        "perSecond": [[second, jobs] for second, jobs in enumerate(due) if jobs],
        "perMinute": [sum(due[begin : begin + MINUTE]) for begin in range(0, len(due), MINUTE)],
        "peak": None
        if found.peak_second is None
        else {"at": format_instant(coming.start + timedelta(seconds=found.peak_second)), "due": found.peak_due},
        "backlog": outlook.backlog,
        "capacity": outlook.capacity,
        "meanSeconds": round(outlook.mean_seconds, 6),
        "worstDelaySeconds": None if worst is None else round(worst, 3),
        "clearsAt": None if clears is None else format_instant(coming.start + timedelta(seconds=clears)),
        "complete": outlook.complete,
    }


async def show_autoscale(request: web.Request) -> web.Response:
    query = query_of(request, AutoscaleQuery)
    lead, clear = math.ceil(query.lead.total_seconds()), math.ceil(query.clear.total_seconds())
    horizon = max(lead + clear, MINUTE)
    outlook = await request.app[FORECASTER].outlook(horizon, handler=query.handler)
    return json_answer(
        {
            "desiredCapacity": desired_capacity(
                outlook.coming, backlog_work=outlook.backlog_work, lead_seconds=lead, clear_seconds=clear
            ),
            "capacity": outlook.capacity,
            "backlog": outlook.backlog,
            "dueNextMinute": sum(outlook.coming.due[:MINUTE]),
            "meanSeconds": round(outlook.mean_seconds, 6),
            "horizonSeconds": horizon,
        }
    )
