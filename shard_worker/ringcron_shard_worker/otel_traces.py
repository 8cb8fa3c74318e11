"""Traces by OpenTelemetry. Imported only where traces are wanted.

Invariant: a run is a trace of its own, never a part of its caller's: it may come hours after the call, and many times.
What leads back is a link. OTEL_* (endpoint, headers, sampler, resource) is read by OpenTelemetry itself.
"""

from __future__ import annotations

import os
from typing import Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

import ringcron
from ringcron.errors import ConfigError
from ringcron.models import Claim, RunOutcome
from ringcron.traceparent import TraceParent, parse_traceparent

ERROR_SHOWN: Final = 200
_BAD: Final = frozenset({RunOutcome.FAILED, RunOutcome.TIMED_OUT})


class OtelTraces:
    """Begins the traces of one worker."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("ringcron", ringcron.__version__)

    def begin(self, claim: Claim, caller: str | None, state: str | None = None) -> OtelRunTrace:
        span = self._tracer.start_span(
            f"run {claim.handler}",
            context=contexts.Context(),
            kind=trace.SpanKind.CONSUMER,
            links=_links(parse_traceparent(caller), state),
            attributes={
                "ringcron.job_id": str(claim.id),
                "ringcron.run_id": claim.run_id,
                "ringcron.handler": claim.handler,
                "ringcron.cause": claim.cause.value,
                "ringcron.attempt": claim.attempt,
                "ringcron.lease_generation": claim.lease_generation,
                "ringcron.scheduled_for": claim.scheduled_for.isoformat(),
            },
        )
        return OtelRunTrace(span)

    def close(self) -> None:
        self._provider.shutdown()


class OtelRunTrace:
    """The span of one run."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        own = self._span.get_span_context()
        return str(TraceParent(own.trace_id, own.span_id, own.trace_flags))

    @property
    def tracestate(self) -> str | None:
        return self._span.get_span_context().trace_state.to_header() or None

    def enter(self) -> None:
        # Never detached: a task has a copy of the context, which ends with it.
        contexts.attach(trace.set_span_in_context(self._span))

    def end(self, outcome: RunOutcome, error: str | None) -> None:
        self._span.set_attribute("ringcron.outcome", outcome.value)
        if outcome in _BAD:
            self._span.set_status(trace.StatusCode.ERROR, (error or outcome.value)[:ERROR_SHOWN])
        self._span.end()


def exporting_provider() -> TracerProvider:
    """One that exports in batches, from a thread of its own: by OTLP over HTTP, or as OTEL_TRACES_EXPORTER says."""
    given = {"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"} & os.environ.keys()
    provider = TracerProvider(resource=Resource.create({} if given else {SERVICE_NAME: "ringcron-worker"}))
    provider.add_span_processor(BatchSpanProcessor(_exporter(os.environ.get("OTEL_TRACES_EXPORTER") or "otlp")))
    return provider


def _exporter(name: str) -> SpanExporter:
    if name == "console":
        return ConsoleSpanExporter()
    if name != "otlp":
        raise ConfigError([f"OTEL_TRACES_EXPORTER: {name!r} must be otlp or console"])
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _links(caller: TraceParent | None, state: str | None) -> list[trace.Link]:
    if caller is None:
        return []
    context = trace.SpanContext(
        *caller[:2],
        is_remote=True,
        trace_flags=trace.TraceFlags(caller.flags),
        trace_state=trace.TraceState.from_header([] if state is None else [state]),
    )
    return [trace.Link(context)]
