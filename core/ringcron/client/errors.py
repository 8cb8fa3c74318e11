"""What a call of the client may raise, as one tree.

    RingcronError
    ├── Unreachable                nobody answered; retriable
    │   └── Misdirected            … as ringcron does, or with a certificate that can be trusted
    └── ApiError                   the API refused the request or failed at it
        ├── ValidationFailed       422: what the request says cannot be accepted; every fault is in `errors`
        │   └── NeverFires         … because the schedule has no tick within eight years
        ├── Unauthorized           401: no API key, or one that is not known
        ├── Forbidden              403: the API key may not do this
        ├── NotFound               404
        ├── JobClaimed             409: a worker had already claimed the job
        ├── RunFinished            409: there is nothing left to cancel
        ├── WrongState             409: the job's state does not allow this
        ├── KeyExists              409: another job holds that key
        ├── TooManyRequests        429; retriable
        └── Unavailable            502, 503, 504: the API or its database is away; retriable

Invariant: an ApiError is made from a problem document (RFC 9457) and holds it whole; programs branch on the class or on
`code`, never on `detail`. `retriable` errors have been tried again already when they reach a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from ringcron.client.values import Instant, read
from ringcron.errors import RingcronError


class Unreachable(RingcronError):
    """The API cannot be reached."""

    retriable = True


class Misdirected(Unreachable):
    """What answers at this address is no ringcron API, or cannot be trusted to be one."""

    retriable = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldFault:
    """One fault of a request. `pointer` names its place by JSON pointer: "/schedule/cron", "/limit" in a query."""

    pointer: str
    code: str
    detail: str


class ApiError(RingcronError):
    """The API refused the request."""

    def __init__(self, problem: Mapping[str, Any], *, retry_after_seconds: float | None = None) -> None:
        """`problem`: the document that came. `retry_after_seconds`: what the answer's header asked for."""
        self.problem = problem
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{self.detail} ({self.code})")

    @property
    def status(self) -> int:
        return int(self.problem["status"])

    @property
    def code(self) -> str:
        return str(self.problem["code"])

    @property
    def detail(self) -> str:
        """A sentence for people; it may change."""
        return str(self.problem["detail"])

    @property
    def errors(self) -> tuple[FieldFault, ...]:
        """Every fault of the request; empty where the problem is another."""
        return tuple(
            FieldFault(pointer=fault["pointer"], code=fault["code"], detail=fault["detail"])
            for fault in self.problem.get("errors", ())
        )

    @property
    def request_id(self) -> str | None:
        """What the API's log calls this request."""
        return self.problem.get("requestId")


class ValidationFailed(ApiError):
    """The request says something that cannot be accepted."""


class NeverFires(ValidationFailed):
    """The schedule has no tick within eight years."""


class Unauthorized(ApiError):
    """There is no API key, or it is not known."""


class Forbidden(ApiError):
    """The API key may not do this."""


class NotFound(ApiError):
    """There is no such thing."""


class JobClaimed(ApiError):
    """A worker has already claimed the job."""

    @property
    def run_id(self) -> str:
        """The run in progress; `Client.cancel_run` ends it."""
        return str(self.problem["runId"])

    @property
    def lease_owner(self) -> str:
        return str(self.problem["leaseOwner"])

    @property
    def lease_until(self) -> datetime:
        return read(Instant, self.problem["leaseUntil"])


class RunFinished(ApiError):
    """The run has ended."""


class WrongState(ApiError):
    """The job's state does not allow this."""

    @property
    def state(self) -> str:
        return str(self.problem["state"])


class KeyExists(ApiError):
    """Another job holds that key."""

    @property
    def job_id(self) -> str:
        """The job that holds it."""
        return str(self.problem["jobId"])


class TooManyRequests(ApiError):
    """Requests come faster than this API key may send them."""

    retriable = True


class Unavailable(ApiError):
    """The API or its database is away."""

    retriable = True


class InProgress(ApiError):
    """An earlier try of this request is still being worked on."""

    retriable = True


_BY_CODE: Final[Mapping[str, type[ApiError]]] = {
    "validation-failed": ValidationFailed,
    "schedule-never-fires": NeverFires,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "not-found": NotFound,
    "job-claimed": JobClaimed,
    "run-finished": RunFinished,
    "wrong-state": WrongState,
    "key-exists": KeyExists,
    "idempotency-in-progress": InProgress,
    "too-many-requests": TooManyRequests,
    "store-unavailable": Unavailable,
}
_BY_STATUS: Final[Mapping[int, type[ApiError]]] = {
    401: Unauthorized,
    403: Forbidden,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
"""For codes of a later version, and for what a proxy answers in the API's place."""


def api_error(status: int, document: Any, *, retry_after_seconds: float | None = None) -> ApiError:
    """The error that an answer is. An answer that is no problem document, as of a proxy, becomes one: `http-502`."""
    problem: Mapping[str, Any]
    if isinstance(document, Mapping) and isinstance(document.get("code"), str) and "detail" in document:
        problem = {"status": status, **document}
        kind = _BY_CODE.get(problem["code"]) or _BY_STATUS.get(status, ApiError)
    else:
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
        problem = {"status": status, "code": f"http-{status}", "detail": f"the answer was {status} {phrase}"}
        kind = _BY_STATUS.get(status, ApiError)
    return kind(problem, retry_after_seconds=retry_after_seconds)
