"""Which error becomes which problem, and that no problem shows what is inside."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from aiohttp import web

from ringcron.errors import JobAlreadyClaimed, JobNotFound, KeyExists, StoreUnavailable
from ringcron_api.cursors import InvalidCursor
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.problems import PROBLEMS, Problem, problem_of, unforeseen
from ringcron_api.strict_json import MalformedJson

JOB = UUID("019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e")
NEVER = Fault(pointer="/schedule/cron", code="never-fires", detail="names a date that no year has")
BAD_KEY = Fault(pointer="/key", code="type", detail="must be text")


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (Problem("expectation-failed", "x"), "expectation-failed", 417),
        (ValidationFailed([BAD_KEY]), "validation-failed", 422),
        (ValidationFailed([NEVER]), "schedule-never-fires", 422),
        (ValidationFailed([NEVER, BAD_KEY]), "validation-failed", 422),
        (MalformedJson("extra data", line=2, column=7), "malformed-json", 400),
        (InvalidCursor(), "invalid-cursor", 400),
        (JobNotFound(), "not-found", 404),
        (KeyExists("k", JOB), "key-exists", 409),
        (StoreUnavailable("connection to server at 10.0.0.7 failed"), "store-unavailable", 503),
        (web.HTTPNotFound(), "not-found", 404),
        (web.HTTPMethodNotAllowed("PUT", ["GET", "POST"]), "method-not-allowed", 405),
        (web.HTTPRequestEntityTooLarge(1, 2), "payload-too-large", 413),
        (web.HTTPBadRequest(), "bad-request", 400),
    ],
)
def test_an_error_that_is_foreseen(error: Exception, code: str, status: int) -> None:
    problem = problem_of(error)
    assert problem is not None
    assert (problem.code, problem.status) == (code, status)
    assert "10.0.0.7" not in problem.detail


def test_an_error_that_nobody_foresaw() -> None:
    assert problem_of(ZeroDivisionError("secret")) is None
    assert "secret" not in unforeseen().detail
    assert unforeseen().status == 500


def test_a_claimed_job_says_by_whom_and_where_to_cancel_the_run() -> None:
    until = datetime(2027, 1, 1, tzinfo=UTC)
    problem = problem_of(JobAlreadyClaimed(JOB, lease_owner="w.1", lease_until=until, lease_generation=3))
    assert problem is not None
    assert problem.members == {
        "runId": f"{JOB}.3",
        "leaseOwner": "w.1",
        "leaseUntil": "2027-01-01T00:00:00Z",
        "cancelUrl": f"/runs/{JOB}.3/cancel",
    }


def test_the_document_of_a_problem() -> None:
    problem = problem_of(ValidationFailed([BAD_KEY, BAD_KEY]))
    assert problem is not None
    response = problem.response(instance="/jobs", request_id="r-1")
    assert response.content_type == "application/problem+json"
    assert response.headers["X-Request-Id"] == "r-1"
    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == {
        "type": "/docs#problem-validation-failed",
        "title": PROBLEMS["validation-failed"].title,
        "status": 422,
        "detail": "/key must be text",
        "instance": "/jobs",
        "code": "validation-failed",
        "requestId": "r-1",
        "errors": [{"pointer": "/key", "code": "type", "detail": "must be text"}],
    }


def test_what_to_do_next_is_in_the_headers() -> None:
    busy = problem_of(StoreUnavailable())
    wrong = problem_of(web.HTTPMethodNotAllowed("PUT", ["POST", "GET"]))
    assert busy is not None
    assert wrong is not None
    assert int(busy.headers["Retry-After"]) > 0
    assert wrong.headers["Allow"] == "GET, POST"
