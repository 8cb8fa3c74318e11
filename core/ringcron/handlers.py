"""Handlers: the user's functions, by name.

    from ringcron import handler

    @handler("send-report")
    async def send_report(ctx, payload): ...

A handler is an async or a plain function called as f(ctx, payload). What it returns (JSON, at most RESULT_LIMIT bytes)
is the run's result; what it raises is the run's error. A job may run more than once: handlers must be idempotent.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar, overload
from uuid import UUID

from ringcron.errors import ConfigError, HandlerNotFound

RESULT_LIMIT: Final = 16 * 1024
"""Bytes of JSON that a run's result may have; a larger one is replaced by a note that says so."""
ERROR_LIMIT: Final = 8 * 1024
"""Characters of a run's error that are kept."""

HANDLER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}")


class RunContext(Protocol):
    """What a handler is told about its run."""

    @property
    def job_id(self) -> UUID: ...
    @property
    def run_id(self) -> str:
        """`<jobId>.<leaseGeneration>`: unique per attempt."""
        ...

    @property
    def scheduled_for(self) -> datetime:
        """The instant the schedule named (UTC); the same over all attempts of one occurrence: the idempotency key."""
        ...

    @property
    def attempt(self) -> int:
        """1, 2, …"""
        ...

    @property
    def lease_generation(self) -> int:
        """The fencing token: grows at every claim of the job. Pass it on; refuse a smaller one than was seen."""
        ...

    @property
    def traceparent(self) -> str | None:
        """The W3C traceparent of this run, to be handed on to what it calls; None where the worker makes no traces."""
        ...

    @property
    def tracestate(self) -> str | None:
        """The W3C tracestate to be handed on beside it; mostly None: a sampler may make one."""
        ...

    @property
    def cancelled(self) -> bool:
        """True once the run has been asked to stop; plain functions should look at it now and then."""
        ...


HandlerFunction = Callable[[Any, Any], Any] | Callable[[Any, Any], Awaitable[Any]]
F = TypeVar("F", bound=Callable[..., Any])


class Fail(Exception):
    """Raised by a handler to say how its failure is to be treated.

    `retry_after_seconds` moves the back-off of the next attempt; `dead` ends the job at once, attempts left or not.
    """

    def __init__(self, message: str, *, retry_after_seconds: float | None = None, dead: bool = False) -> None:
        self.retry_after_seconds = retry_after_seconds
        self.dead = dead
        super().__init__(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Handler:
    """A registered handler. `reference` ("module:qualified.name") tells two functions of one name apart."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    reference: str


class HandlerRegistry:
    """Handlers by name. A name registered twice for two functions is a ConfigError."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def register(self, name: str, function: Callable[..., Any]) -> None:
        if not HANDLER_NAME.fullmatch(name):
            raise ConfigError([f"handler name {name!r}: 1 to 128 letters, digits and _.:/- are allowed"])
        reference = f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"
        known = self._handlers.get(name)
        if known is not None and known.reference != reference:
            raise ConfigError([f"handler {name!r} is registered twice: {known.reference} and {reference}"])
        self._handlers[name] = Handler(name=name, function=function, is_async=_is_async(function), reference=reference)

    def copy(self) -> HandlerRegistry:
        """Another registry with the same handlers; what is added to one is not in the other."""
        other = HandlerRegistry()
        other._handlers.update(self._handlers)
        return other

    def alias(self, name: str, target: str) -> None:
        """Let `name` mean what `target` means, unless `name` is registered already."""
        self._handlers.setdefault(name, self.get(target))

    def get(self, name: str) -> Handler:
        try:
            return self._handlers[name]
        except KeyError:
            raise HandlerNotFound(f"no handler {name!r} here; there are: {', '.join(self.names())}") from None

    def find(self, name: str) -> Handler | None:
        return self._handlers.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._handlers))

    def __contains__(self, name: str) -> bool:
        return name in self._handlers


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


REGISTRY: Final = HandlerRegistry()
"""Where @handler registers. The worker reads it once at start."""


@overload
def handler(name: str) -> Callable[[F], F]: ...
@overload
def handler(name: F) -> F: ...
def handler(name: Any) -> Any:
    """Register a function as a handler: `@handler("name")`, or `@handler` to use the function's own name."""
    if callable(name):
        REGISTRY.register(name.__name__, name)
        return name

    def register(function: F) -> F:
        REGISTRY.register(name, function)
        return function

    return register


def load_handlers(module: str) -> None:
    """Import a module (dotted name, or a path to a .py file in or below the current folder) for its @handler functions.

    Raises ConfigError when it cannot be imported, naming the module and the reason.
    """
    name = module
    if module.endswith(".py"):
        name = os.path.relpath(module).removesuffix(".py").replace(os.sep, ".")
        if name.startswith("."):
            raise ConfigError([f"--handlers {module}: must lie in or below the current folder, {os.getcwd()}"])
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ConfigError([f"--handlers {module}: cannot be imported: {type(error).__name__}: {error}"]) from error
