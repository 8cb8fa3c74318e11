"""One call of the API over HTTP, tried again where that may help.

Invariants: what is tried again is the same request byte for byte, its Idempotency-Key included, so that a call whose
answer was lost is not done twice. Nothing is tried again after the deadline, nor what the API refused. The API key is
sent to `base_url` alone (no redirect is followed, no proxy of the environment is used) and stands in no error, log line
or repr.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import aiohttp
from yarl import URL

from ringcron import __version__
from ringcron.client.errors import ApiError, Misdirected, Unreachable, api_error
from ringcron.clock import Clock
from ringcron.errors import ConfigError
from ringcron.redaction import redact

CONNECT_SECONDS: Final = 5.0
TRY_SECONDS: Final = 10.0
"""How long one try may take; the API answers within five seconds, a database that hangs included."""
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 5.0
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
NDJSON: Final = "application/x-ndjson"
_API_KEY: Final = re.compile(r"[!-~]+")

_log = logging.getLogger(__name__)  # not structlog, which prints where the program that uses this has not configured it


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked. `slow`: one try may take all the time that there is."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    media_type: str = JSON
    idempotency_key: str | None = None
    slow: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A success. `body` is the JSON value, of NDJSON a list of values, or None.

    `next_cursor`: of the page that the header Link calls the next; None where there is none.
    """

    status: int
    body: Any
    next_cursor: str | None


class Transport:
    """Calls one API over connections that it keeps."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        timeout: timedelta,
        tries: int | None,
        clock: Clock,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`timeout`: of a call, all its tries included. `tries`: at most so many; None: as many as fit. ConfigError."""
        self._base = base_of(base_url)
        self._headers = {"Accept": f"{JSON}, {NDJSON}", "User-Agent": f"ringcron/{__version__}"}
        if api_key is not None:
            if not _API_KEY.fullmatch(api_key):
                raise ConfigError(["the API key must be one word of ASCII, such as rc_…_…"])
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout_seconds = timeout.total_seconds()
        self._tries = tries
        self._clock = clock
        self._uniform = uniform
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"Transport({str(self._base)!r})"

    @property
    def url(self) -> str:
        """The address of the API."""
        return str(self._base)

    async def close(self) -> None:
        """Close the connections. The next call would open new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def call(self, request: Request) -> Answer:
        """The success that the API answers. Raises ApiError, Unreachable."""
        ends_at = self._clock.elapsed() + self._timeout_seconds
        tried = 0
        while True:
            left = ends_at - self._clock.elapsed()
            try:
                return await self._try(request, left if request.slow else min(left, TRY_SECONDS))
            except (ApiError, Unreachable) as error:
                tried += 1
                pause = pause_before(tried, error, self._uniform)
                out_of_tries = self._tries is not None and tried >= self._tries
                if not error.retriable or out_of_tries or self._clock.elapsed() + pause >= ends_at:
                    raise
                _log.debug("the API is asked again in %.3f s, after %d tries: %s", pause, tried, error)
            await asyncio.sleep(pause)

    async def _try(self, request: Request, seconds: float) -> Answer:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers, cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=None)
            )
        headers = {} if request.content is None else {"Content-Type": request.media_type}
        if request.idempotency_key is not None:
            headers["Idempotency-Key"] = request.idempotency_key
        try:
            async with self._session.request(
                request.method,
                self._base.joinpath(request.path.removeprefix("/"), encoded=True).with_query(request.query),
                data=request.content,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=max(seconds, 0.001), sock_connect=CONNECT_SECONDS),
            ) as response:
                content = await response.read()
                return _answer(response, content)
        except aiohttp.ClientSSLError as error:
            raise Misdirected(f"{self._base} cannot be trusted: {error.os_error}") from None
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise Unreachable(f"{self._base} cannot be reached: {_reason(error, seconds)}") from None


def json_content(value: Any) -> bytes:
    """The value as JSON. ValueError for what JSON cannot hold (NaN), TypeError for what is no JSON value."""
    return json.dumps(value, allow_nan=False).encode()


def base_of(url: str) -> URL:
    """The address under which every path lies. ConfigError where it cannot be one."""
    try:
        base = URL(url)
    except ValueError:
        raise ConfigError([f"the address of the API is no URL: {redact(url)!r}"]) from None
    if base.scheme not in ("http", "https") or not base.host:
        raise ConfigError([f"the address of the API must be an http or https URL, not {redact(url)!r}"])
    if base.user is not None or base.password is not None:
        raise ConfigError(["the address of the API must not hold a user or a password: an API key is given apart"])
    if base.query_string or base.fragment:
        raise ConfigError([f"the address of the API must not have a query or a fragment: {redact(url)!r}"])
    return base.with_path(base.path.rstrip("/") or "/")


def pause_before(tried: int, error: ApiError | Unreachable, uniform: Callable[[float, float], float]) -> float:
    """Seconds until the next try after `tried` ones: doubling and jittered, and never sooner than the API asked."""
    backoff = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(tried - 1, 16)) * uniform(0.5, 1.0)
    asked = error.retry_after_seconds if isinstance(error, ApiError) else None
    return max(backoff, asked or 0.0)


def _answer(response: aiohttp.ClientResponse, content: bytes) -> Answer:
    """A success, or the error that the answer is."""
    try:
        document = _value(content, response.content_type)
        readable = True
    except ValueError:
        document, readable = None, False
    if response.status >= 300:
        raise api_error(response.status, document, retry_after_seconds=_retry_after(response))
    if not readable:
        raise Misdirected(f"{response.url.origin()} does not answer as ringcron does: its answer is no JSON")
    link = response.links.get("next")
    cursor = None if link is None else URL(str(link["url"])).query.get("cursor")
    return Answer(status=response.status, body=document, next_cursor=cursor)


def _value(content: bytes, media_type: str) -> Any:
    """ValueError where it is no JSON."""
    if media_type == NDJSON:
        return [json.loads(line) for line in content.splitlines() if line]
    return json.loads(content) if content else None


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    """Seconds; None where the header is absent or is a date, which only a wall clock could measure against."""
    text = response.headers.get("Retry-After", "")
    return float(text) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else None


def _reason(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:.3g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__
