"""The session of a person who looks at the dashboard: a key shown once, then a cookie.

    cookie  <key id>.<expires, Unix seconds>.<nonce>.<mac>      mac, CSRF token: HMAC-SHA256 under the key's stored hash
    without keys  <nonce>                                       CSRF token: a hash of it (double submit)

Invariants: the cookie holds no secret, and any API process takes it, because what signs it is in the database. It ends
with its key, and LIFE_SECONDS after it was last renewed. It opens pages and nothing else: no call of the JSON API looks
at it. A form counts only with the token of the session and from our own pages.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from aiohttp import web

from ringcron.api_keys import ApiKey, Scope
from ringcron_api.hosts import is_from_own_page
from ringcron_api.problems import Problem

COOKIE: Final = "ringcron_session"
OPEN_COOKIE: Final = "ringcron_open"
LIFE_SECONDS: Final = 3600
RENEW_SECONDS: Final = LIFE_SECONDS // 2
SLACK_SECONDS: Final = 5
"""How far apart two API processes may be in what they take for the database's clock."""
TOKEN_FIELD: Final = "csrf"
PATH: Final = "/dashboard"
_FORM: Final = re.compile(r"([0-9A-Za-z]{1,32})\.(\d{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})", re.ASCII)
_NONCE: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """Who looks. `key` None: no key is needed. `cookie`: what the browser is to have from now on, if another."""

    key: ApiKey | None
    token: str
    cookie: str | None = None

    def may(self, scope: Scope) -> bool:
        return self.key is None or self.key.scope.includes(scope)

    @property
    def who(self) -> str:
        return "anyone on this machine" if self.key is None else f"{self.key.name} · {self.key.scope}"


SESSION: Final = web.RequestKey("session", Session)


def session_of(request: web.Request) -> Session | None:
    """Who looks; None on pages that are open to all."""
    return request.get(SESSION)


def begin(key: ApiKey, now: datetime) -> Session:
    """A new session of a key that was shown."""
    expires = int((now + timedelta(seconds=LIFE_SECONDS)).timestamp())
    body = f"{key.id}.{expires}.{secrets.token_hex(16)}"
    return Session(key=key, token=_token(key, body), cookie=f"{body}.{_mac(key, body)}")


def key_id_in(cookie: str) -> str | None:
    """Of which key a cookie says that it is."""
    form = _FORM.fullmatch(cookie)
    return None if form is None else form[1]


def resume(cookie: str, key: ApiKey, now: datetime) -> Session | None:
    """The session of a cookie, renewed where half its life is over; None where it is not one of ours, or has ended."""
    form = _FORM.fullmatch(cookie)
    if form is None or form[1] != key.id:
        return None
    body = cookie.rpartition(".")[0]
    left = int(form[2]) - now.timestamp()
    if not hmac.compare_digest(form[4], _mac(key, body)) or not 0 < left <= LIFE_SECONDS + SLACK_SECONDS:
        return None
    if left >= LIFE_SECONDS - RENEW_SECONDS:
        return Session(key=key, token=_token(key, body))
    expires = int((now + timedelta(seconds=LIFE_SECONDS)).timestamp())
    longer = f"{key.id}.{expires}.{form[3]}"  # the same nonce, so that forms that are open keep their token
    return Session(key=key, token=_token(key, longer), cookie=f"{longer}.{_mac(key, longer)}")


def open_session(cookie: str | None) -> Session:
    """The session of somebody who needs no key."""
    if cookie is not None and _NONCE.fullmatch(cookie):
        return Session(key=None, token=_open_token(cookie))
    nonce = secrets.token_hex(16)
    return Session(key=None, token=_open_token(nonce), cookie=nonce)


def set_cookie(request: web.Request, response: web.StreamResponse, session: Session) -> None:
    """Give the browser the session's cookie, where it is to have another."""
    if session.cookie is None:
        return
    forwarded = request.headers.get("X-Forwarded-Proto", "").lower() == "https"
    response.set_cookie(
        OPEN_COOKIE if session.key is None else COOKIE,
        session.cookie,
        max_age=LIFE_SECONDS,
        path=PATH,
        secure=request.secure or forwarded,
        httponly=True,
        samesite="Strict",
    )


async def demand_own_form(request: web.Request, session: Session) -> None:
    """Raises Problem `forbidden` unless the form was sent from our own pages, with the session's token."""
    demand_own_origin(request)
    sent = (await request.post()).get(TOKEN_FIELD, "")
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), session.token.encode()):
        raise Problem("forbidden", "the form is not of this session: go back, load the page again, and send it again")


def demand_own_origin(request: web.Request) -> None:
    """Raises Problem `forbidden` unless the browser says that a page of ours sends this."""
    if not is_from_own_page(request.headers):
        raise Problem("forbidden", "forms are taken from the dashboard's own pages only")


def _mac(key: ApiKey, body: str) -> str:
    return hmac.new(key.secret_hash, f"ringcron dashboard session {body}".encode(), sha256).hexdigest()


def _token(key: ApiKey, body: str) -> str:
    nonce = body.rpartition(".")[2]
    return hmac.new(key.secret_hash, f"ringcron dashboard form {nonce}".encode(), sha256).hexdigest()


def _open_token(nonce: str) -> str:
    return sha256(f"ringcron dashboard form {nonce}".encode()).hexdigest()
