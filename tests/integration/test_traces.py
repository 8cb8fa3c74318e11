"""Traces: the caller's traceparent is kept with the job, each run is a trace of its own that is linked to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ringcron.clock import DatabaseClock, SystemClock
from ringcron.errors import ConfigError
from ringcron.models import Arc, Cause, Claim, RunOutcome
from ringcron.store.bounds import UNBOUNDED
from ringcron.store.claimed import Claimed, decode_claimed
from ringcron.store.worker import WorkerStore
from ringcron.traceparent import parse_traceparent
from ringcron_shard_worker.execution import RunControl
from ringcron_shard_worker.otel_traces import OtelTraces
from ringcron_shard_worker.traces import make_traces
from tests.support.api import ApiCaller, running_api
from tests.support.execution_program import make_execution, make_request

FIRST = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECOND = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
STATE = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
FAR = "2040-01-01T00:00:00Z"

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[ApiCaller]:
    async with running_api(database_url) as api:
        yield api


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        yield connection


async def kept(connection: Connection, job_id: str) -> str | None:
    row = await (await connection.execute("select traceparent from jobs where id = %s", (job_id,))).fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


async def state_kept(connection: Connection, job_id: str) -> str | None:
    row = await (await connection.execute("select tracestate from jobs where id = %s", (job_id,))).fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


async def test_a_job_keeps_the_trace_of_the_call_that_made_it_until_one_triggers_it(
    api: ApiCaller, connection: Connection
) -> None:
    body = {"runAt": FAR, "key": "k", "onConflict": "replace"}
    made = await api.call("POST", "/jobs", json=body, headers={"traceparent": FIRST})
    job_id = made["jobId"]
    assert await kept(connection, job_id) == FIRST
    assert (await api.patch(f"/jobs/{job_id}", {"name": "n", "runAt": "2041-01-01T00:00:00Z"})).status == 200
    assert (await api.call("POST", f"/jobs/{job_id}/trigger")).status == 202
    assert await kept(connection, job_id) == FIRST
    triggered = await api.call("POST", f"/jobs/{job_id}/trigger", headers={"traceparent": SECOND})
    assert triggered.status == 202
    assert await kept(connection, job_id) == SECOND
    assert (await api.call("POST", "/jobs", json=body, headers={"traceparent": FIRST}))["jobId"] == job_id
    assert await kept(connection, job_id) == FIRST


async def test_every_job_of_a_batch_keeps_it(api: ApiCaller, connection: Connection) -> None:
    jobs = [{"runAt": FAR}, {"runAt": FAR}, {"runAt": FAR, "key": "k"}]
    headers = {"traceparent": FIRST, "tracestate": STATE}
    made = await api.call("POST", "/jobs/batch", json={"jobs": jobs}, headers=headers)
    assert {await kept(connection, result["jobId"]) for result in made.body["results"]} == {FIRST}
    assert {await state_kept(connection, result["jobId"]) for result in made.body["results"]} == {STATE}


async def test_a_tracestate_stays_with_its_traceparent(
    database_url: str, api: ApiCaller, connection: Connection
) -> None:
    body = {"runAt": FAR, "key": "k", "onConflict": "replace"}
    first, second = {"traceparent": FIRST, "tracestate": STATE}, {"traceparent": SECOND}
    made = await api.call("POST", "/jobs", json=body, headers=first)
    job_id = made["jobId"]
    assert await state_kept(connection, job_id) == STATE
    for headers, state in (({}, STATE), ({"tracestate": "a=1"}, STATE), (second, None), (first, STATE)):
        assert (await api.call("POST", f"/jobs/{job_id}/trigger", headers=headers)).status == 202
        assert await state_kept(connection, job_id) == state
    await api.call("POST", "/jobs", json=body, headers=second)
    assert await state_kept(connection, job_id) is None
    await api.call("POST", "/jobs", json=body, headers=first)
    await connection.execute("update jobs set next_run_at = now()")
    clock = SystemClock()
    store = WorkerStore(
        database_url,
        worker_id="a.1",
        clock=clock,
        database_clock=DatabaseClock(clock),
        lease_seconds=15,
        statement_seconds=10,
    )
    try:
        (claim,) = await store.claim(Arc(lo=0, hi=4095), ["default"], batch=5, bounds=UNBOUNDED)
        assert claim.inline is not None
        for row in (decode_claimed(claim, claim.inline), *await store.read_claimed([claim])):
            assert isinstance(row, Claimed)
            assert (row.going.definition.traceparent, row.going.definition.tracestate) == (FIRST, STATE)
    finally:
        await store.close()


async def test_a_header_that_cannot_be_understood_refuses_nothing(api: ApiCaller, connection: Connection) -> None:
    for text in ("nonsense", ""):
        made = await api.call("POST", "/jobs", json={"runAt": FAR}, headers={"traceparent": text})
        assert made.status == 201
        assert await kept(connection, made["jobId"]) is None


# --- the worker ---


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def traces(exporter: InMemorySpanExporter) -> Iterator[OtelTraces]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield OtelTraces(provider)
    provider.shutdown()


def claim_of(handler: str) -> Claim:
    now = datetime(2030, 1, 2, tzinfo=UTC)
    return Claim(
        id=UUID(int=7),
        next_run_at=now,
        lease_generation=3,
        handler=handler,
        attempt=2,
        scheduled_for=now,
        cause=Cause.SCHEDULE,
        claimed_at=now,
        decided_until=now,
        lost=0,
    )


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


def test_a_run_is_a_trace_of_its_own_that_is_linked_to_the_callers(
    traces: OtelTraces, exporter: InMemorySpanExporter
) -> None:
    with TracerProvider().get_tracer("test").start_as_current_span("whatever goes on here"):
        run = traces.begin(claim_of("mail"), FIRST, STATE)
        run.end(RunOutcome.SUCCEEDED, None)
    span = only(exporter)
    assert span.name == "run mail"
    assert span.parent is None
    (link,) = span.links
    assert (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") == tuple(FIRST.split("-")[1:3])
    assert span.context.trace_id != link.context.trace_id
    assert link.context.trace_state.to_header() == STATE
    assert run.tracestate is None  # the caller's belongs to the caller's trace
    assert run.traceparent.startswith(f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-")
    assert str(parse_traceparent(run.traceparent)) == run.traceparent
    assert span.attributes is not None
    assert span.attributes["ringcron.job_id"] == str(UUID(int=7))
    assert (span.attributes["ringcron.attempt"], span.attributes["ringcron.outcome"]) == (2, "succeeded")
    assert span.status.status_code is trace.StatusCode.UNSET


@pytest.mark.parametrize("caller", [None, "nonsense"])
def test_a_run_without_a_callers_trace_has_no_link(
    traces: OtelTraces, exporter: InMemorySpanExporter, caller: str | None
) -> None:
    traces.begin(claim_of("mail"), caller).end(RunOutcome.FAILED, "no " * 1000)
    span = only(exporter)
    assert span.links == ()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.status.description is not None
    assert len(span.status.description) == 200


@pytest.mark.parametrize("handler", ["echo", "echo-sync"])
async def test_a_handler_knows_the_trace_of_its_run(traces: OtelTraces, handler: str) -> None:
    execution = make_execution()
    await execution.start()
    try:
        run = traces.begin(claim_of(handler), None)
        request = replace(make_request(handler), trace=run)
        result = await execution.run(request, RunControl(SystemClock().elapsed() + 60))
        without = await execution.run(make_request(handler), RunControl(SystemClock().elapsed() + 60))
    finally:
        await execution.close()
    assert json.loads(result.result or b"")["trace"] == run.traceparent
    assert json.loads(without.result or b"")["trace"] is None


async def test_what_an_async_handler_begins_is_a_child_of_its_run(traces: OtelTraces) -> None:
    execution = make_execution()
    await execution.start()
    here = "__import__('opentelemetry.trace').trace.get_current_span().get_span_context().span_id"
    try:
        run = traces.begin(claim_of("give"), None)
        request = replace(make_request("give", here), trace=run)
        result = await execution.run(request, RunControl(SystemClock().elapsed() + 60))
    finally:
        await execution.close()
    assert f"{int(result.result or b''):016x}" == run.traceparent.split("-")[2]
    assert not trace.get_current_span().get_span_context().is_valid  # nothing of it is left behind here


_IMPORTED = """
import sys
import ringcron_api.__main__, ringcron_coordinator.__main__, ringcron_shard_worker.__main__
from ringcron_shard_worker.traces import make_traces
assert make_traces(False) is None
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_nothing_of_opentelemetry_is_imported_unless_traces_are_wanted() -> None:
    said = subprocess.run([sys.executable, "-c", _IMPORTED], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_traces_that_are_wanted_and_cannot_be_made_are_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ringcron_shard_worker.otel_traces", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"pip install 'ringcron\[otel\]'"):
        make_traces(True)
    assert make_traces(False) is None


def test_an_exporter_that_is_unknown_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with pytest.raises(ConfigError, match="must be otlp or console"):
        make_traces(True)
