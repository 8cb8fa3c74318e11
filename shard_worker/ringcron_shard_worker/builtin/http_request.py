"""From the payload of the http handler to the request that is sent. Pure.

Invariant: who the run is, is said by this worker alone: a payload can neither set a Ringcron-* header nor a header that
steers the connection, and no header can carry a line break.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import orjson
from multidict import CIMultiDict
from yarl import URL

import ringcron
from ringcron.durations import parse_duration
from ringcron.handlers import RunContext
from ringcron_shard_worker.builtin.payload import Payload

FIELDS: Final = ("url", "method", "headers", "body", "deadline")
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
DEADLINE_SECONDS: Final = 30.0
LONGEST_DEADLINE_SECONDS: Final = 86400.0
URL_LIMIT: Final = 8192
LONGEST_RETRY_SECONDS: Final = 30 * 86400.0

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
_HEADER_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_CONNECTION_HEADERS: Final = frozenset(
    ("connection", "content-length", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization",
     "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is sent, and within how many seconds the whole exchange must be over."""

    url: URL
    method: str
    headers: CIMultiDict[str]
    body: bytes | None
    deadline_seconds: float


def read_request(ctx: RunContext, payload: Any) -> Request:
    """Raises Fail, dead at once, with every fault of the payload."""
    fields = Payload(payload, fields=FIELDS)
    fields.required("url")
    url = fields.parsed("url", _url)
    method = fields.parsed("method", _method)
    headers = _headers(fields)
    deadline = fields.parsed("deadline", _deadline)
    body = fields.value("body")
    fields.check()
    assert url is not None
    headers.setdefault("User-Agent", f"ringcron/{ringcron.__version__}")
    headers.setdefault("Accept-Encoding", "identity")
    if body is not None:
        headers.setdefault("Content-Type", "text/plain; charset=utf-8" if isinstance(body, str) else "application/json")
    headers.update(_identity(ctx))
    if ctx.traceparent is not None:
        if "traceparent" not in headers and ctx.tracestate is not None:
            headers.setdefault("tracestate", ctx.tracestate)
        headers.setdefault("traceparent", ctx.traceparent)
    return Request(
        url=url,
        method=method or ("GET" if body is None else "POST"),
        headers=headers,
        body=None if body is None else body.encode() if isinstance(body, str) else orjson.dumps(body),
        deadline_seconds=deadline or DEADLINE_SECONDS,
    )


def retry_after_seconds(value: str | None, answered_at: datetime) -> float | None:
    """What a Retry-After header asks for: seconds, or a date; at most 30 days. None where there is none to be read."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), LONGEST_RETRY_SECONDS)
    at = http_date(text)
    if at is None:
        return None
    return min(max((at - answered_at).total_seconds(), 0.0), LONGEST_RETRY_SECONDS)


def http_date(text: str | None) -> datetime | None:
    """An HTTP date in UTC; None for anything else."""
    try:
        at = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _identity(ctx: RunContext) -> dict[str, str]:
    return {
        "Ringcron-Job-Id": str(ctx.job_id),
        "Ringcron-Run-Id": ctx.run_id,
        "Ringcron-Scheduled-For": ctx.scheduled_for.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "Ringcron-Attempt": str(ctx.attempt),
        "Ringcron-Lease-Generation": str(ctx.lease_generation),
    }


def _url(text: str) -> URL:
    if len(text) > URL_LIMIT:
        raise ValueError(f"must not be longer than {URL_LIMIT} characters")
    if _CONTROL.search(text):
        raise ValueError("must not hold spaces or control characters")
    try:
        url = URL(text)
        port = url.port
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}") from None
    if url.scheme not in ("http", "https"):
        raise ValueError("must begin with http:// or https://")
    if not url.host:
        raise ValueError("names no host")
    if port == 0:
        raise ValueError("names port 0")
    return url


def _method(text: str) -> str:
    if text.upper() not in METHODS:
        raise ValueError(f"must be one of {', '.join(METHODS)}")
    return text.upper()


def _deadline(text: str) -> float:
    seconds = parse_duration(text).total_seconds()
    if not 0 < seconds <= LONGEST_DEADLINE_SECONDS:
        raise ValueError("must be longer than PT0S and at most P1D")
    return seconds


def _headers(fields: Payload) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in (fields.mapping("headers") or {}).items():
        where = f"headers.{name if _TOKEN.fullmatch(name) else ascii(name)}"
        if not _TOKEN.fullmatch(name):
            fields.fault(where, "is not the name of a header")
        elif name.lower().startswith("ringcron-"):
            fields.fault(where, "is set by ringcron")
        elif name.lower() in _CONNECTION_HEADERS:
            fields.fault(where, "belongs to the connection and cannot be set")
        elif _HEADER_CONTROL.search(value):
            fields.fault(where, "must not hold line breaks or control characters")
        elif name in headers:
            fields.fault(where, "is given twice")
        else:
            headers[name] = value
    return headers
