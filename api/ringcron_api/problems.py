"""Every answer that is not a success: application/problem+json (RFC 9457), and which error becomes which.

Invariant: the table PROBLEMS is closed; its codes are what programs act on. Nothing internal reaches a caller: no
stack, no SQL, no address, only what the caller said and what became of it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import orjson
from aiohttp import web

from ringcron.errors import (
    IdempotencyInProgress,
    JobAlreadyClaimed,
    JobNotFound,
    KeyExists,
    RunFinished,
    RunNotFound,
    ScheduleError,
    StoreUnavailable,
    WrongState,
)
from ringcron.instants import format_instant
from ringcron.redaction import redact
from ringcron_api.answers import run_id
from ringcron_api.cursors import InvalidCursor
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.strict_json import MalformedJson

CONTENT_TYPE: Final = "application/problem+json"
RETRY_AFTER_SECONDS: Final = 2
REQUEST_ID_HEADER: Final = "X-Request-Id"
_MADE: Final = web.RequestKey("request id", str)
_REQUEST_ID: Final = re.compile(r"(?!rc_)[A-Za-z0-9._-]{1,64}")
"""What is taken over from a caller: a plain short word, and no API key sent in the wrong header."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of problem. `title` is the same wherever it occurs."""

    status: int
    title: str


PROBLEMS: Final[Mapping[str, Kind]] = {
    "bad-request": Kind(status=400, title="The request is not HTTP that can be understood"),
    "malformed-json": Kind(status=400, title="The body is not JSON that is accepted here"),
    "invalid-cursor": Kind(status=400, title="The cursor does not belong to this list and these filters"),
    "unauthorized": Kind(status=401, title="An API key is needed, and this is none that is live"),
    "forbidden": Kind(status=403, title="The API key does not have the scope that this call needs"),
    "host-not-allowed": Kind(status=403, title="Without API keys it is not answered under this name"),
    "origin-not-allowed": Kind(status=403, title="Without API keys nothing is done for pages of other sites"),
    "not-found": Kind(status=404, title="There is no such thing"),
    "method-not-allowed": Kind(status=405, title="This path does not have this method"),
    "request-timeout": Kind(status=408, title="The request did not arrive in time"),
    "job-claimed": Kind(status=409, title="A worker has already claimed the job"),
    "run-finished": Kind(status=409, title="The run has ended already"),
    "wrong-state": Kind(status=409, title="The state of the job does not allow this"),
    "key-exists": Kind(status=409, title="Another job holds this key"),
    "idempotency-in-progress": Kind(status=409, title="A request with this Idempotency-Key is being answered"),
    "payload-too-large": Kind(status=413, title="The body or the payload is too large"),
    "unsupported-media-type": Kind(status=415, title="The body is not JSON of a kind that is accepted here"),
    "expectation-failed": Kind(status=417, title="The expectation in the header Expect cannot be met"),
    "validation-failed": Kind(status=422, title="The request says something that cannot be accepted"),
    "schedule-never-fires": Kind(status=422, title="The schedule never fires"),
    "idempotency-key-reused": Kind(status=422, title="The Idempotency-Key came with another request before"),
    "too-many-requests": Kind(status=429, title="The API key was used more often than it may be"),
    "internal-error": Kind(status=500, title="Something went wrong here, not with the request"),
    "store-unavailable": Kind(status=503, title="The database cannot be reached"),
}


def request_id_of(request: web.BaseRequest) -> str:
    """The caller's request id, or one that is made for it; the same each time."""
    made = request.get(_MADE)
    if made is None:
        given = request.headers.get(REQUEST_ID_HEADER, "")
        made = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        request[_MADE] = made
    return made


class Problem(Exception):
    """An answer that is not a success. `members` are extension members of the document."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        members: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.detail = detail
        self.members = members or {}
        self.headers = headers or {}
        super().__init__(f"{code}: {detail}")

    @property
    def status(self) -> int:
        return PROBLEMS[self.code].status

    def document(self) -> dict[str, Any]:
        """The problem by itself, as it stands within an answer."""
        return {
            "type": f"/docs#problem-{self.code}",
            "title": PROBLEMS[self.code].title,
            "status": self.status,
            "detail": redact(self.detail),  # it may repeat a path, and a path may hold anything
            "code": self.code,
            **self.members,
        }

    def response(self, *, instance: str, request_id: str) -> web.Response:
        """The answer. `instance`: the path that was asked for."""
        document = {**self.document(), "instance": redact(instance), "requestId": request_id}
        return web.Response(
            body=orjson.dumps(document),
            status=self.status,
            headers={"Content-Type": CONTENT_TYPE, REQUEST_ID_HEADER: request_id, **self.headers},
        )


def problem_of(error: BaseException) -> Problem | None:
    """The problem that an error is for the caller; None for one that nobody foresaw."""
    match error:
        case Problem():
            return error
        case ValidationFailed():
            return _validation(error)
        case MalformedJson():
            detail = f"{error.detail}, at line {error.line}, column {error.column}"
            return Problem("malformed-json", detail, members={"line": error.line, "column": error.column})
        case InvalidCursor():
            return Problem("invalid-cursor", "begin again without a cursor, or send the filters it came with")
        case JobNotFound() | RunNotFound():
            return Problem("not-found", str(error))
        case JobAlreadyClaimed():
            return _claimed(error)
        case RunFinished():
            return Problem("run-finished", str(error))
        case WrongState():
            return Problem("wrong-state", str(error), members={"state": error.state})
        case ScheduleError():
            return _stored_schedule(error)
        case KeyExists():
            return Problem("key-exists", str(error), members={"jobId": str(error.job_id)})
        case IdempotencyInProgress():
            return Problem(
                "idempotency-in-progress",
                "try again in a moment, with the same key",
                headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
            )
        case StoreUnavailable():
            return Problem(
                "store-unavailable",
                "nothing was lost; jobs run late while the database is away. Try again",
                headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
            )
        case web.HTTPException():
            return _http(error)
    return None


def unforeseen() -> Problem:
    """What a caller is told of an error that nobody foresaw: nothing but that it is in the log."""
    return Problem("internal-error", "the log has the details under this requestId")


def _validation(error: ValidationFailed) -> Problem:
    faults = error.faults
    only = faults[0] if len(faults) == 1 else None
    code = "schedule-never-fires" if only is not None and only.code == "never-fires" else "validation-failed"
    place = only.pointer or "the body" if only is not None else ""
    detail = f"{place} {only.detail}" if only is not None else f"{len(faults)} faults: see errors"
    return Problem(code, detail, members={"errors": [fault.wire() for fault in faults]})


def _stored_schedule(error: ScheduleError) -> Problem:
    """The schedule is not the caller's but the job's, which a later version or a hand may have spoilt."""
    detail = f"as it is stored cannot be evaluated: {error}"
    fault = Fault(pointer=f"/schedule{error.pointer}", code=error.code, detail=detail)
    return _validation(ValidationFailed([fault]))


def _claimed(error: JobAlreadyClaimed) -> Problem:
    run = run_id(error.job_id, error.lease_generation)
    members = {
        "runId": run,
        "leaseOwner": error.lease_owner,
        "leaseUntil": format_instant(error.lease_until),
        "cancelUrl": f"/runs/{run}/cancel",
    }
    return Problem("job-claimed", str(error), members=members)


def _http(error: web.HTTPException) -> Problem:
    """What aiohttp itself refuses."""
    match error:
        case web.HTTPNotFound():
            return Problem("not-found", "there is nothing at this path; /docs lists every one")
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            return Problem("method-not-allowed", f"this path has {allowed}", headers={"Allow": allowed})
        case web.HTTPRequestEntityTooLarge():
            return Problem("payload-too-large", "the body is larger than is accepted here")
    return Problem("bad-request", HTTPStatus(error.status).phrase.lower())
