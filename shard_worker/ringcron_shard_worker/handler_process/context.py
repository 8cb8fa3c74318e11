"""What a handler is told about its run: the RunContext of both kinds of handler."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(kw_only=True, slots=True)
class Context:
    """A ringcron.RunContext.

    `saw_stop`: the handler has looked at `cancelled` and found it true. A plain function that never looked and returns
    has done its work; one that looked may have left early.
    """

    job_id: UUID
    run_id: str
    scheduled_for: datetime
    attempt: int
    lease_generation: int
    traceparent: str | None = None
    tracestate: str | None = None
    saw_stop: bool = field(default=False, init=False)
    _asked: bool = field(default=False, init=False)

    @property
    def cancelled(self) -> bool:
        """True once the run has been asked to stop."""
        if self._asked:
            self.saw_stop = True
        return self._asked

    def ask_to_stop(self) -> None:
        """From now on `cancelled` is true. May be called from any thread."""
        self._asked = True
