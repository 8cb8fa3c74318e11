"""Where the simulation takes the place of what is outside of our programs, and how it is put back.

Invariant: this is the whole list. What is not named here is the product's own code.

    replaced                       by
    kazoo's client                 kazoo_client.KazooClient; its stop and start are not in threads
    psycopg's connections          psycopg_connection.Connection; statements keep their bounds as parameters
    the guard, handler processes   handler_processes.Guard, HandlerPool
    os._exit                       the death of the process
    4,096 slots                    64
    upkeep, watchdog               nothing: they have no part in what is simulated
    the decoding of assignments    the same, remembered
    logs                           nothing but faults of ours, which are violations
    metrics                        nothing
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ringcron.assignment import decode
from ringcron_sql import query
from tests.simulation.event_loop import PROCESS, this_process
from tests.simulation.handler_processes import Guard, HandlerPool
from tests.simulation.kazoo_client import KazooClient
from tests.simulation.plan import SLOTS
from tests.simulation.process import Exited
from tests.simulation.psycopg_connection import Connection
from tests.simulation.referee import Violation


def leave() -> None:
    """The process ends at once."""
    this_process().die()
    raise Exited


class _Nothing:
    """Does nothing, whatever is asked of it."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    __getitem__ = __getattr__

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _Duties:
    epochs = _Nothing()

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass


class _Log:
    """Keeps quiet, but for exceptions: the programs meet none that they do not know."""

    def debug(self, *_: Any, **__: Any) -> None:
        pass

    info = warning = error = critical = debug

    def exception(self, event: str, **fields: Any) -> None:
        process = PROCESS.get()
        if process is not None and process.alive:
            error = sys.exc_info()[1]
            process.world.violated(Violation("no fault of ours", f"{event}: {error!r} {fields}", process.id))


_decode = lru_cache(256)(decode)  # pure, and asked often


async def _at_once(function: Callable[[], object], seconds: float) -> None:
    function()


def _token_hex(size: int) -> str:
    return f"{this_process().world.random.getrandbits(8 * size):0{2 * size}x}"


def _programs_with(name: str) -> list[str]:
    """The modules of the product, as far as they are in use here, that have something of that name."""
    return [path for path, module in sys.modules.items() if path.startswith("ringcron") and name in vars(module)]


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Everything in its place, and back afterwards."""
    replaced: list[tuple[str, str, Any]] = [
        ("ringcron.membership.session", "KazooClient", KazooClient),
        ("ringcron.membership.session", "_aside", _at_once),
        ("ringcron.store.link", "OpenedConnection", Connection),
        ("ringcron.store.worker", "pinned", lambda name, parameters: query(name)),
        ("ringcron.store.link", "cut", Connection.cut),
        ("ringcron.store.connection", "cut", Connection.cut),
        ("ringcron_coordinator.coordinator", "SLOT_COUNT", SLOTS),
        ("ringcron_coordinator.coordinator", "Duties", _Duties),
        ("ringcron_coordinator.coordinator", "Watchdog", _Nothing),
        ("ringcron_coordinator.leader", "secrets", SimpleNamespace(token_hex=_token_hex)),
        ("ringcron_shard_worker.slice_holder", "SLOT_COUNT", SLOTS),
        ("ringcron_shard_worker.execution.execution", "GuardLink", Guard),
        ("ringcron_shard_worker.execution.execution", "HandlerPool", HandlerPool),
        ("ringcron_shard_worker.execution.execution", "leave", leave),
        ("ringcron_shard_worker.worker", "leave", leave),
        ("ringcron_coordinator.leader", "decode", _decode),
        ("ringcron_shard_worker.slice_holder", "decode", _decode),
        *((module, "_log", _Log()) for module in _programs_with("_log")),
        *((module, "metrics", _Nothing()) for module in _programs_with("metrics")),
    ]
    with contextlib.ExitStack() as stack:
        for module, name, value in replaced:
            stack.enter_context(patch.object(importlib.import_module(module), name, value))
        yield
