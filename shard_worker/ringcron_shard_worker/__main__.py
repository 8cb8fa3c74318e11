"""The worker program: settings, handlers, service."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import secrets
from typing import Final

import structlog

from ringcron import service
from ringcron.clock import SystemClock
from ringcron.errors import ConfigError, StoreUnavailable
from ringcron.settings import WorkerSettings
from ringcron.store.pooled import WORKER_PLANS, missing_role_settings
from ringcron_shard_worker.builtin import BuiltinSettings, full_registry
from ringcron_shard_worker.execution import Execution
from ringcron_shard_worker.lease_keeper import GRACE_SHARE
from ringcron_shard_worker.slice_holder import SliceHolder
from ringcron_shard_worker.traces import Traces, make_traces
from ringcron_shard_worker.worker import Worker

EXPORT_SECONDS: Final = 3.0
YOUNG_OBJECTS: Final = 10_000
"""So many new objects may be alive before the garbage collector looks at them."""

_log = structlog.get_logger(__name__)


def main(settings: WorkerSettings) -> int:
    """Run a worker until it is asked to drain; returns the exit code of the process."""
    # Of this process start: a name that comes back is another incarnation, and owns nothing of the old one.
    worker_id = f"{settings.name}.{secrets.token_hex(4)}"

    async def body(drain: asyncio.Event) -> None:
        if settings.behind_pooler:
            await demand_plans(settings, worker_id)
        traces = make_traces(settings.traces)
        worker = make_worker(settings, worker_id, traces)
        _collect_rarely()
        try:
            await worker.run(drain)
        finally:
            if traces is not None:
                await _export_the_rest(traces)

    return service.run(
        "worker",
        settings,
        body,
        name=worker_id,
        metrics_port=settings.metrics_port,
        metrics_host=settings.metrics_host,
    )


async def demand_plans(settings: WorkerSettings, worker_id: str) -> None:
    """Raises ConfigError where the role does not say what a worker behind a pooler cannot say itself: other plans of
    its statements can take seconds. Where the database cannot be asked, the worker starts."""
    try:
        missing = await missing_role_settings(
            settings.database_url, WORKER_PLANS, application_name=worker_id, clock=SystemClock()
        )
    except StoreUnavailable as error:
        _log.warning("whether the role has the planner settings of a worker is not known", reason=str(error))
        return
    if missing:
        raise ConfigError(
            [
                "RINGCRON_DATABASE_POOLER is 'transaction', and the role lacks planner settings that a worker cannot "
                f"set behind it: {' '.join(missing)} Then let the pooler reconnect (PgBouncer: RECONNECT); or connect "
                "this worker to PostgreSQL itself"
            ]
        )


async def _export_the_rest(traces: Traces) -> None:
    """For a moment only: nobody's drain waits for a collector that is away."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(EXPORT_SECONDS):
            await asyncio.to_thread(traces.close)


def _collect_rarely() -> None:
    """What has been imported by now stays, and a run leaves no cycles: looking for them at Python's usual pace costs a
    quarter of the work on short runs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def make_worker(settings: WorkerSettings, worker_id: str, traces: Traces | None = None) -> Worker:
    """Load the handlers and put a worker together. Raises ConfigError where a module cannot be imported."""
    builtin = BuiltinSettings(
        default_handler=settings.default_handler,
        allow_commands=settings.allow_commands,
        http_allow=settings.http_allow,
        http_deny=settings.http_deny,
    )
    registry = full_registry(settings.handlers, builtin)
    clock = SystemClock()
    execution = Execution(
        registry,
        clock,
        modules=settings.handlers,
        builtin=builtin,
        grace_seconds=settings.lease_seconds * GRACE_SHARE,
        log_format=settings.log_format,
        log_level=settings.log_level,
    )
    handlers = registry.names()
    holder = SliceHolder(settings, worker_id=worker_id, handlers=handlers, clock=clock)
    return Worker(
        settings,
        worker_id=worker_id,
        handlers=handlers,
        holder=holder,
        execution=execution,
        clock=clock,
        traces=traces,
    )


if __name__ == "__main__":
    raise SystemExit("start it as: ringcron worker")
