"""Who calls: what handlers and records may know of it.

Invariant: a caller is known by the id and the name of the key it showed, once `access` has let it in; the key itself
goes no further than that. Without a key a caller is anonymous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from ringcron.store.audit import Act, Action
from ringcron.traceparent import CallTrace, call_trace
from ringcron_api.problems import request_id_of

ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The holder of an API key. The id is never given to another key; the name is for people."""

    key_id: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} (key {self.key_id})"


_CALLER: Final = web.RequestKey("caller", Caller)
_ACT: Final = web.RequestKey("act", Act)


def let_in(request: web.Request, caller: Caller) -> None:
    """Remember who calls; for `access` alone."""
    request[_CALLER] = caller


def caller_of(request: web.Request) -> Caller | None:
    """The holder of the key that came with the request; None where none was needed."""
    return request.get(_CALLER)


def actor_of(request: web.Request) -> str:
    """The caller in words for records such as pausedBy: `billing (key 4fGh…)`, or `anonymous`."""
    caller = caller_of(request)
    return ANONYMOUS if caller is None else str(caller)


def trace_of(request: web.Request) -> CallTrace | None:
    """The trace that the call belongs to, where it says so in a way that can be understood."""
    return call_trace(request.headers.get("traceparent"), request.headers.getall("tracestate", []))


def act_of(request: web.Request, action: Action, detail: Mapping[str, Any] | None = None) -> Act:
    """What the caller is about to do, for the audit log; the middleware logs it where it comes to be done."""
    caller = caller_of(request)
    act = Act(
        action=action,
        key_id=None if caller is None else caller.key_id,
        key_name=None if caller is None else caller.name,
        request_id=request_id_of(request),
        detail=detail,
    )
    request[_ACT] = act
    return act


def last_act_of(request: web.Request) -> Act | None:
    """What the handler of the request was about to do."""
    return request.get(_ACT)
