"""Which exception an answer becomes, how long the client pauses, and what it never shows."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from ringcron.client import (
    ApiError,
    Client,
    FieldFault,
    Forbidden,
    JobClaimed,
    KeyExists,
    Misdirected,
    NeverFires,
    NotFound,
    RunFinished,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unreachable,
    ValidationFailed,
    WrongState,
)
from ringcron.client.errors import api_error
from ringcron.client.transport import LONGEST_PAUSE_SECONDS, base_of, pause_before
from ringcron.errors import ConfigError, RingcronError
from ringcron_api.problems import PROBLEMS

KEY = "rc_abc_s3cret"


def problem(code: str, status: int, **members: Any) -> dict[str, Any]:
    return {"type": "x", "title": "x", "status": status, "detail": "why", "code": code, "requestId": "r1", **members}


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("validation-failed", 422, ValidationFailed),
        ("schedule-never-fires", 422, NeverFires),
        ("unauthorized", 401, Unauthorized),
        ("forbidden", 403, Forbidden),
        ("not-found", 404, NotFound),
        ("job-claimed", 409, JobClaimed),
        ("run-finished", 409, RunFinished),
        ("wrong-state", 409, WrongState),
        ("key-exists", 409, KeyExists),
        ("too-many-requests", 429, TooManyRequests),
        ("store-unavailable", 503, Unavailable),
        ("payload-too-large", 413, ApiError),
        ("of-a-later-version", 418, ApiError),
    ],
)
def test_a_problem_becomes_the_exception_of_its_code(code: str, status: int, kind: type[ApiError]) -> None:
    error = api_error(status, problem(code, status))
    assert type(error) is kind
    assert (error.status, error.code, error.detail, error.request_id) == (status, code, "why", "r1")
    assert error.retriable is (status in (429, 503))
    assert isinstance(error, RingcronError)


@pytest.mark.parametrize("code", PROBLEMS)
def test_every_problem_of_the_api_is_one_that_the_client_reads(code: str) -> None:
    assert api_error(PROBLEMS[code].status, problem(code, PROBLEMS[code].status)).code == code


def test_every_fault_of_a_request_is_there() -> None:
    fault = {"pointer": "/schedule/cron", "code": "invalid", "detail": "must be", "in": "body"}
    error = api_error(422, problem("validation-failed", 422, errors=[fault]))
    assert error.errors == (FieldFault(pointer="/schedule/cron", code="invalid", detail="must be"),)


def test_what_a_conflict_says_can_be_acted_on() -> None:
    claimed = api_error(
        409, problem("job-claimed", 409, runId="a.1", leaseOwner="w.1", leaseUntil="2027-01-01T00:00:00Z")
    )
    assert isinstance(claimed, JobClaimed)
    assert (claimed.run_id, claimed.lease_owner, claimed.lease_until.year) == ("a.1", "w.1", 2027)
    taken = api_error(409, problem("key-exists", 409, jobId="a"))
    assert isinstance(taken, KeyExists)
    assert taken.job_id == "a"
    wrong = api_error(409, problem("wrong-state", 409, state="done"))
    assert isinstance(wrong, WrongState)
    assert wrong.state == "done"


@pytest.mark.parametrize(
    ("status", "kind"), [(502, Unavailable), (504, Unavailable), (401, Unauthorized), (500, ApiError)]
)
@pytest.mark.parametrize("document", [None, "<html>", [], {"error": "bad gateway"}])
def test_what_a_proxy_answers_is_an_error_too(status: int, kind: type[ApiError], document: Any) -> None:
    error = api_error(status, document)
    assert type(error) is kind
    assert error.code == f"http-{status}"


def test_pauses_double_up_to_a_cap_and_obey_retry_after() -> None:
    def most(_: float, high: float) -> float:
        return high

    fault = Unreachable()
    assert [pause_before(tried, fault, most) for tried in (1, 2, 3, 4)] == [0.1, 0.2, 0.4, 0.8]
    assert pause_before(10_000, fault, most) == LONGEST_PAUSE_SECONDS
    assert pause_before(1, api_error(503, problem("store-unavailable", 503), retry_after_seconds=7.0), most) == 7.0
    assert pause_before(4, api_error(503, problem("store-unavailable", 503), retry_after_seconds=0.0), most) == 0.8


def test_only_what_cannot_get_better_is_not_tried_again() -> None:
    assert Unreachable.retriable
    assert not Misdirected.retriable
    assert api_error(409, problem("idempotency-in-progress", 409)).retriable


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8080",
        "ftp://x",
        "http://",
        "http://me:pw@127.0.0.1",
        "http://me@127.0.0.1",
        "ftp://me:pw@127.0.0.1",
        "http://me:pw@[::1",
        "http://x/?a=b",
        "http://x/#f",
        "http://x:99999",
        "http://[::1",
    ],
)
def test_what_is_no_address_is_refused_before_any_call(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client(url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://x:8080", "http://x:8080/", "https://x/ringcron", "https://x/ringcron/"])
def test_every_path_lies_below_the_address(url: str) -> None:
    path = str(base_of(url).joinpath("jobs"))
    assert path == re.sub(r"/$", "", url) + "/jobs"


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "é"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client("http://x", key)
    assert not key or key not in str(caught.value)


def test_the_api_key_is_in_no_repr() -> None:
    client = Client("http://x", KEY, timeout=timedelta(seconds=1))
    assert KEY not in repr(client) + repr(client._transport) + str(client)
