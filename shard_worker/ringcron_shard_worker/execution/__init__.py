"""Execution of runs: handlers are called, asked to stop, and ended when they do not.

    Execution ─▶ async handlers in the worker's event loop
        │  └──▶ plain functions, commands and quarantined jobs, each in a handler process
        └──────▶ guard: a process of its own that holds every deadline

Invariant: nothing of a run goes on past the end of its trust (`RunControl.trust_until`), even where the worker cannot
run: no handler, no child of one, no command. What a run left behind is ended with the run. PostgreSQL decides whether
the run counts; this package only sees to it that the run is over before the job can start elsewhere.
"""

from ringcron_shard_worker.execution.execution import Execution
from ringcron_shard_worker.execution.request import RunControl, RunRequest, RunResult, StopReason

__all__ = ["Execution", "RunControl", "RunRequest", "RunResult", "StopReason"]
