"""A trace of each run, where one is asked for (RINGCRON_TRACES).

Invariant: without that no module of OpenTelemetry is imported, and a run costs one comparison more.
"""

from __future__ import annotations

from typing import Protocol

from ringcron.errors import ConfigError
from ringcron.models import Claim, RunOutcome


class RunTrace(Protocol):
    """The trace of one run."""

    @property
    def traceparent(self) -> str:
        """To be handed on to whatever the run calls."""
        ...

    @property
    def tracestate(self) -> str | None:
        """What is to be handed on beside it: of this trace, not of the caller's, whose own goes with the link."""
        ...

    def enter(self) -> None:
        """What the running task does from now on belongs to the trace."""
        ...

    def end(self, outcome: RunOutcome, error: str | None) -> None:
        """The run has ended."""
        ...


class Traces(Protocol):
    """Where traces are begun, and handed over for export."""

    def begin(self, claim: Claim, caller: str | None, state: str | None = None) -> RunTrace:
        """A new trace, linked to that of the call that created or last triggered the job (`caller`, a traceparent, and
        `state`, the tracestate that came with it)."""
        ...

    def close(self) -> None:
        """Export what is left. Blocks for a moment."""
        ...


def make_traces(wanted: bool) -> Traces | None:
    """None where none are wanted. Raises ConfigError where the packages are missing."""
    if not wanted:
        return None
    try:
        from ringcron_shard_worker.otel_traces import OtelTraces, exporting_provider
    except ImportError as error:
        raise ConfigError(
            [f"RINGCRON_TRACES: {error.name or error} is not installed: pip install 'ringcron[otel]'"]
        ) from error
    return OtelTraces(exporting_provider())
