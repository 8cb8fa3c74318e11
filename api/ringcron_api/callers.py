"""Who calls: what handlers and records may know of it.

Invariant: a caller is known by the id and the name of the key it showed, once `access` has let it in; the key itself
goes no further than that. Without a key a caller is anonymous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiohttp import web

ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The holder of an API key. The id is never given to another key; the name is for people."""

    key_id: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} (key {self.key_id})"


_CALLER: Final = "caller"


def let_in(request: web.Request, caller: Caller) -> None:
    """Remember who calls; for `access` alone."""
    request[_CALLER] = caller


def caller_of(request: web.Request) -> Caller | None:
    """The holder of the key that came with the request; None where none was needed."""
    caller: Caller | None = request.get(_CALLER)
    return caller


def actor_of(request: web.Request) -> str:
    """The caller in words for records such as pausedBy: `billing (key 4fGh…)`, or `anonymous`."""
    caller = caller_of(request)
    return ANONYMOUS if caller is None else str(caller)
