"""Who is let in, and to what.

    no key shown    let in where no live key exists and the API may do without (see ApiSettings.may_be_open); else 401
    key shown       401 unless it is live; 429 beyond its rate; 403 without the scope that the call needs

    no key needed   403 for a name that is not ours, and for a write from a page that is not ours (`hosts`)

    page            the same by the session's cookie: no live one is 401, which the dashboard shows as a way to log in

Invariant: a call reaches its handler only through here, unless its operation says `open`. A cookie opens pages alone,
and a form of a page counts only with the session's token. Nothing that a caller showed is repeated in an answer or in
the log.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

from aiohttp import hdrs, web

from ringcron.api_keys import ApiKey, KeyText, Scope
from ringcron.errors import StoreUnavailable
from ringcron_api.callers import Caller, let_in
from ringcron_api.dashboard import session as session_module
from ringcron_api.dashboard.session import Session
from ringcron_api.hosts import Hosts, is_from_another_page, is_from_browser
from ringcron_api.key_ring import KeyRing
from ringcron_api.operations import Operation
from ringcron_api.problems import Problem

_CHALLENGE: Final = 'Bearer realm="ringcron"'


class Access:
    """The rules of one API process."""

    def __init__(
        self,
        ring: KeyRing,
        operations: Mapping[web.AbstractRoute, Operation],
        *,
        may_be_open: bool,
        hosts: Hosts,
        now: Callable[[], Awaitable[datetime]],
    ) -> None:
        """`may_be_open`: calls without a key are let in as long as no live key exists. `now`: the database's clock."""
        self._ring = ring
        self._now = now
        self._operations = operations
        self._may_be_open = may_be_open
        self._hosts = hosts

    async def admit(self, request: web.Request) -> None:
        """Let the caller in. Raises Problem, and StoreUnavailable where the keys cannot be read."""
        operation = self._operations.get(request.match_info.route)
        if operation is None or operation.open:  # None: there is nothing at this path, which anybody may be told
            return
        if operation.page:
            key = await self._page_key(request, operation)
        else:
            key = await self._key(operation, request.headers.getall(hdrs.AUTHORIZATION, []))
        if key is None:
            if not (operation.page or operation.any_host):
                self._demand_neighbour(request, operation)
            return
        let_in(request, Caller(key_id=key.id, name=key.name))
        self._ring.touch(key)
        wait_seconds = self._ring.wait_seconds(key)
        if wait_seconds > 0:
            raise _too_many(key, wait_seconds)
        if not key.scope.includes(operation.needed_scope):
            raise _forbidden(key, operation.needed_scope)

    async def session(self, request: web.Request) -> Session:
        """Who looks at the dashboard. Raises Problem, and StoreUnavailable where the keys cannot be read."""
        if self._may_be_open and not await self._ring.any_live():
            self._demand_own_name(request)
            return session_module.open_session(request.cookies.get(session_module.OPEN_COOKIE))
        cookie = request.cookies.get(session_module.COOKIE, "")
        key_id = session_module.key_id_in(cookie)
        key = None if key_id is None else await self._ring.find(key_id)
        session = None if key is None else session_module.resume(cookie, key, await self._now())
        if session is None:
            raise Problem("unauthorized", "log in with an API key; `ringcron key add` makes one")
        return session

    async def log_in(self, request: web.Request, shown: str) -> Session:
        """A new session for the key that was shown. Raises Problem."""
        session_module.demand_own_origin(request)
        text = KeyText.parse(shown.strip())
        key = None if text is None else await self._ring.find(text.id)
        if text is None or key is None or not key.is_opened_by(text):
            raise Problem("unauthorized", "this is no key that is live here; a key looks like rc_…")
        wait_seconds = self._ring.wait_seconds(key)
        if wait_seconds > 0:
            raise _too_many(key, wait_seconds)
        self._ring.touch(key)
        return session_module.begin(key, await self._now())

    async def _page_key(self, request: web.Request, operation: Operation) -> ApiKey | None:
        session = await self.session(request)
        request[session_module.SESSION] = session
        if operation.method != "GET":
            await session_module.demand_own_form(request, session)
        return session.key

    def _demand_neighbour(self, request: web.Request, operation: Operation) -> None:
        if is_from_browser(request.headers):
            self._demand_own_name(request)
        if operation.method != "GET" and is_from_another_page(request.headers):
            raise Problem(
                "origin-not-allowed",
                "without API keys nothing is changed for pages of other sites; `ringcron key add` makes a key",
            )

    def _demand_own_name(self, request: web.Request) -> None:
        """A page of another site whose name was made to point here would otherwise be taken for ours."""
        transport = request.transport
        reached_at = None if transport is None else transport.get_extra_info("sockname")
        host = request.headers.get(hdrs.HOST, "")
        if not self._hosts.know(host, reached_at):
            raise Problem(
                "host-not-allowed",
                f"without API keys this is for this machine alone, and {host[:100]!r} is no name of it: call 127.0.0.1 "
                "or localhost, or say the name in RINGCRON_ALLOWED_HOSTS, or make a key with `ringcron key add`",
            )

    async def _key(self, operation: Operation, shown: list[str]) -> ApiKey | None:
        """The live key that was shown; None where none is needed. Raises Problem."""
        text = _bearer(shown)
        try:
            if self._may_be_open and not await self._ring.any_live():
                return None
            key = None if text is None else await self._ring.find(text.id)
        except StoreUnavailable:
            if operation.needs_store:
                raise
            if self._may_be_open and not self._ring.known:
                return None
            key = None if text is None else self._ring.known.get(text.id)
        if text is None or key is None or not key.is_opened_by(text):
            raise _unauthorized(shown)
        return key


def _bearer(shown: list[str]) -> KeyText | None:
    """The key in the headers `Authorization`; None where there is not exactly one that holds one."""
    if len(shown) != 1:
        return None
    scheme, _, text = shown[0].partition(" ")
    return KeyText.parse(text.strip(" ")) if scheme.lower() == "bearer" else None


def _unauthorized(shown: list[str]) -> Problem:
    """One answer for every key that opens nothing: it does not tell an unknown one from a revoked one."""
    if not shown:
        return Problem(
            "unauthorized",
            "send an API key, as Authorization: Bearer rc_…; `ringcron key add` makes one",
            headers={hdrs.WWW_AUTHENTICATE: _CHALLENGE},
        )
    return Problem(
        "unauthorized",
        "the header Authorization holds no key that is live here; it looks like Bearer rc_…",
        headers={hdrs.WWW_AUTHENTICATE: f'{_CHALLENGE}, error="invalid_token"'},
    )


def _forbidden(key: ApiKey, needed: Scope) -> Problem:
    return Problem(
        "forbidden",
        f"this call needs the scope {needed}; the key {key.id} has {key.scope}",
        members={"neededScope": needed.value},
        headers={hdrs.WWW_AUTHENTICATE: f'{_CHALLENGE}, error="insufficient_scope", scope="{needed}"'},
    )


def _too_many(key: ApiKey, wait_seconds: float) -> Problem:
    return Problem(
        "too-many-requests",
        f"the key {key.id} may call {key.rate_per_second:g} times a second, {key.burst} at once",
        headers={hdrs.RETRY_AFTER: str(math.ceil(wait_seconds))},
    )
