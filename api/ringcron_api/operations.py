"""What one call of the API is: where, by whom it is answered, and what the OpenAPI document says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web
from pydantic import BaseModel

from ringcron.api_keys import Scope
from ringcron.store.api import ANSWER_SECONDS
from ringcron_api.schemas import NoQuery, Query, Wire

BODY_LIMIT: Final = 1024 * 1024
"""Bytes of a body, where an operation does not take more."""

NDJSON: Final = "application/x-ndjson"
"""JSON values, one on each line."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A success. `shape` None: no body, or one that is not JSON."""

    description: str
    shape: type[BaseModel] | None = None
    listed: bool = False
    """A bare array of `shape`."""
    line: type[BaseModel] | None = None
    """What each line is where the body was NDJSON."""
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header → what it says."""
    examples: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one path. `problems` are codes of the table in `problems`."""

    method: str
    path: str
    handler: Handler
    name: str
    group: str
    summary: str
    description: str = ""
    query: type[Query] | None = NoQuery
    """None: whatever stands after the `?` is not looked at."""
    body: type[Wire] | None = None
    body_kinds: tuple[str, ...] = ("application/json",)
    body_line: type[Wire] | None = None
    """What each line of an NDJSON body is, where one is taken."""
    body_examples: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[int, Answer]
    problems: tuple[str, ...] = ()
    idempotent: bool = False
    """Takes Idempotency-Key. The handler does all that it does through `store_of`."""
    traced: bool = False
    """Keeps the caller's traceparent and tracestate with the job."""
    body_limit: int = BODY_LIMIT
    """Bytes of a body."""
    seconds: float = ANSWER_SECONDS
    """How long its work in the store may take."""
    open: bool = False
    """Answered without a key."""
    scope: Scope | None = None
    """What a key must have. None: `read` for GET, `write` for anything else."""
    page: bool = False
    """A page of the dashboard: the caller is known by the session's cookie, and a form needs the session's token."""
    any_host: bool = False
    """Answered, where no key is needed, under whatever name it is called."""
    needs_store: bool = True
    """False: answered also while the database is down, to the keys that were known before."""

    @property
    def needed_scope(self) -> Scope:
        if self.scope is not None:
            return self.scope
        return Scope.READ if self.method == "GET" else Scope.WRITE
