"""The built-in handlers: log, sleep, fail, http, command.

Invariants: a worker and its handler processes know the same handlers, because both make their registry from the same
modules and settings, here. Each built-in is a module with `register(registry, settings)`, imported only where it is
needed. A built-in's payload is checked before anything happens; a fault in it makes the job dead at once, since trying
again cannot help. `command` exists only where commands are allowed.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from ringcron.handlers import REGISTRY, HandlerRegistry, load_handlers

BUILTINS: Final = ("log", "sleep", "fail", "http", "command")
DEFAULT: Final = "default"
"""What a job's handler is called where it names none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltinSettings:
    """`http_allow` and `http_deny` are networks; see ringcron.addresses for what counts when."""

    default_handler: str = "log"
    allow_commands: bool = False
    http_allow: tuple[str, ...] = ()
    http_deny: tuple[str, ...] = ()

    def message(self) -> dict[str, Any]:
        """For a handler process."""
        return asdict(self)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> BuiltinSettings:
        networks = {name: tuple(message[name]) for name in ("http_allow", "http_deny")}
        return cls(**(message | networks))


def user_registry(modules: Iterable[str]) -> HandlerRegistry:
    """The @handler functions, after importing `modules`. ConfigError names the module that cannot be imported."""
    for module in modules:
        load_handlers(module)
    return REGISTRY.copy()


def add_builtin(registry: HandlerRegistry, name: str, settings: BuiltinSettings) -> None:
    """Register one of BUILTINS. ConfigError where a user's handler has that name or a setting is wrong."""
    if name == "command" and not settings.allow_commands:
        return
    importlib.import_module(f"{__name__}.{name}").register(registry, settings)


def full_registry(modules: Iterable[str], settings: BuiltinSettings) -> HandlerRegistry:
    """Every handler that a worker has: the user's, the built-in ones, and `default` where no user's has that name.

    ConfigError for modules that cannot be imported, names taken twice and a default handler that does not exist.
    """
    registry = user_registry(modules)
    for name in BUILTINS:
        add_builtin(registry, name, settings)
    registry.alias(DEFAULT, settings.default_handler)
    return registry
