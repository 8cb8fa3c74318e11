"""From a payload to the request that the http handler sends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from ringcron import Fail
from ringcron_shard_worker.builtin.http_request import Request, http_date, read_request, retry_after_seconds
from ringcron_shard_worker.handler_process.context import Context

JOB = UUID("01890000-0000-7000-8000-000000000001")
NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def made(**payload: Any) -> Request:
    context = Context(job_id=JOB, run_id=f"{JOB}.9", scheduled_for=NOW, attempt=2, lease_generation=9)
    return read_request(context, payload)


def fault(**payload: Any) -> str:
    with pytest.raises(Fail) as caught:
        made(**payload)
    assert caught.value.dead
    return str(caught.value)


def test_the_least_payload() -> None:
    request = made(url="https://example.org/a?b=c")

    assert (request.method, request.body, request.deadline_seconds) == ("GET", None, 30.0)
    assert str(request.url) == "https://example.org/a?b=c"


def test_the_run_is_named_in_the_headers() -> None:
    headers = made(url="http://example.org").headers

    assert headers["Ringcron-Job-Id"] == str(JOB)
    assert headers["Ringcron-Run-Id"] == f"{JOB}.9"
    assert headers["Ringcron-Scheduled-For"] == "2030-01-02T03:04:05Z"
    assert headers["Ringcron-Attempt"] == "2"
    assert headers["Ringcron-Lease-Generation"] == "9"


@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [
        ({"a": "é"}, '{"a":"é"}'.encode(), "application/json"),
        ([1], b"[1]", "application/json"),
        (False, b"false", "application/json"),
        ("plain é", "plain é".encode(), "text/plain; charset=utf-8"),
        ("", b"", "text/plain; charset=utf-8"),
    ],
)
def test_bodies(body: object, sent: bytes, kind: str) -> None:
    request = made(url="http://example.org", body=body)

    assert (request.method, request.body, request.headers["Content-Type"]) == ("POST", sent, kind)


def test_the_users_headers_are_sent() -> None:
    headers = made(url="http://example.org", headers={"content-type": "a/b", "X-Mine": "1"}, body="x").headers

    assert headers["Content-Type"] == "a/b"
    assert headers["x-mine"] == "1"
    assert len(headers.getall("Content-Type")) == 1


def test_method_and_deadline() -> None:
    request = made(url="http://example.org", method="delete", deadline="PT1.5S")

    assert (request.method, request.deadline_seconds) == ("DELETE", 1.5)


@pytest.mark.parametrize("name", ["Ringcron-Job-Id", "RINGCRON-attempt", "ringcron-other"])
def test_headers_of_ours_cannot_be_set(name: str) -> None:
    assert fault(url="http://example.org", headers={name: "x"}) == f"payload.headers.{name} is set by ringcron"


@pytest.mark.parametrize("name", ["Connection", "keep-alive", "TE", "Transfer-Encoding", "Upgrade", "Content-Length"])
def test_headers_of_the_connection_cannot_be_set(name: str) -> None:
    assert f"payload.headers.{name} belongs to the connection" in fault(url="http://example.org", headers={name: "x"})


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\x01b"])
def test_headers_hold_no_line_breaks(value: str) -> None:
    assert "payload.headers.X must not hold line breaks" in fault(url="http://example.org", headers={"X": value})


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "é"])
def test_names_of_headers(name: str) -> None:
    assert "is not the name of a header" in fault(url="http://example.org", headers={name: "x"})


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "//example.org", "/path", "ftp://example.org", "file:///etc/passwd", "http://", "http:///a",
     "http://example.org:99999/", "http://exa mple.org/", "http://example.org/\r\nX", "http://[::1", "http://a:0/",
     "gopher://127.0.0.1/", "unix:///run/docker.sock", "http+unix://%2Frun%2Fdocker.sock/", "ws://example.org",
     "http://example.org/" + "x" * 9000],
)  # fmt: skip
def test_what_is_no_url_of_a_target(url: str) -> None:
    assert fault(url=url).startswith("payload.url ")


def test_every_fault_is_named_at_once() -> None:
    text = fault(uri="http://example.org", method="BREW", headers=[1], deadline="30s")

    assert "payload.uri is not known; did you mean url?" in text
    assert "payload.url is required" in text
    assert "payload.method must be one of GET" in text
    assert "payload.headers must be an object" in text
    assert "payload.deadline must be an ISO 8601 duration: write PT30S" in text


@pytest.mark.parametrize("deadline", ["PT0S", "P2D", 30, "P1M", ""])
def test_deadlines(deadline: object) -> None:
    assert fault(url="http://example.org", deadline=deadline).startswith("payload.deadline ")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("120", 120),
        (" 0 ", 0),
        ("1.5", None),
        ("-3", None),
        ("soon", None),
        ("Wed, 02 Jan 2030 03:05:05 GMT", 60),
        ("Wed, 02 Jan 2030 03:00:00 GMT", 0),
        ("Wednesday, 02-Jan-30 03:05:05 GMT", 60),
        ("9" * 40, 30 * 86400),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 30 * 86400),
        ("٣", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds


def test_http_dates() -> None:
    assert http_date("Wed, 02 Jan 2030 03:04:05 GMT") == NOW
    assert http_date(None) is None
    assert http_date("Wed, 99 Jan 2030 03:04:05 GMT") is None


def test_the_target_becomes_a_child_of_the_runs_trace_where_there_is_one() -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    context = Context(
        job_id=JOB,
        run_id=f"{JOB}.9",
        scheduled_for=NOW,
        attempt=2,
        lease_generation=9,
        traceparent=trace,
        tracestate="ot=th:8",
    )
    headers = read_request(context, {"url": "http://example.org"}).headers
    assert (headers["traceparent"], headers["tracestate"]) == (trace, "ot=th:8")
    own = {"url": "http://example.org", "headers": {"Traceparent": "mine"}}
    assert read_request(context, own).headers["traceparent"] == "mine"
    assert "tracestate" not in read_request(context, own).headers  # it is that of another trace
    assert "traceparent" not in made(url="http://example.org").headers
