"""A worker in small for the tests: runs handlers with the real execution, without any server.

    python -m tests.support.execution_program '{"runs": [{"handler": …, "payload": …}], "trust": 2, "renew": false, …}'

Prints one JSON line per event on standard output: `{"event": "ready", "guard": PID}`, then `{"event": "ended", …}` for
each run, then `{"event": "closed"}`. With `renew` the trust of every run is moved every fifth of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from ringcron import logs
from ringcron.clock import SystemClock
from ringcron_shard_worker.builtin import BuiltinSettings, full_registry
from ringcron_shard_worker.execution import Execution, RunControl, RunRequest

MODULES = ("tests.support.sample_handlers",)


def make_execution(*, grace_seconds: float = 1.0, idle_seconds: float = 60.0, **builtin: Any) -> Execution:
    """An execution with the sample handlers and, unless told otherwise, commands allowed."""
    settings = BuiltinSettings(**({"allow_commands": True} | builtin))
    return Execution(
        full_registry(MODULES, settings),
        SystemClock(),
        modules=MODULES,
        builtin=settings,
        grace_seconds=grace_seconds,
        idle_seconds=idle_seconds,
    )


def make_request(
    handler: str, payload: Any = None, *, timeout: float | None = None, solo: bool = False, attempt: int = 1
) -> RunRequest:
    job_id = uuid4()
    return RunRequest(
        job_id=job_id,
        run_id=f"{job_id}.7",
        handler=handler,
        payload=payload,
        scheduled_for=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        attempt=attempt,
        lease_generation=7,
        timeout_seconds=timeout,
        solo=solo,
    )


def _say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


async def _renew(controls: list[RunControl], trust: float) -> None:
    while True:
        await asyncio.sleep(trust / 5)
        for control in controls:
            control.extend(SystemClock().elapsed() + trust)


async def _main(wish: dict[str, Any]) -> None:
    logs.configure(program="worker", name=None, form="json", level="info", clock=SystemClock())
    execution = make_execution(grace_seconds=wish.get("grace", 0.5))
    await execution.start()
    _say("ready", guard=execution.guard_pid)
    controls = [RunControl(SystemClock().elapsed() + wish["trust"]) for _ in wish["runs"]]
    renewing = asyncio.create_task(_renew(controls, wish["trust"])) if wish.get("renew") else None

    async def go(run: dict[str, Any], control: RunControl) -> None:
        request = make_request(run["handler"], run.get("payload"), solo=run.get("solo", False))
        result = await execution.run(request, control)
        _say("ended", handler=run["handler"], outcome=result.outcome, error=result.error)

    await asyncio.gather(*(go(run, control) for run, control in zip(wish["runs"], controls, strict=True)))
    if renewing is not None:
        renewing.cancel()
    await asyncio.sleep(wish.get("linger", 0))
    await execution.close()
    _say("closed")


if __name__ == "__main__":
    asyncio.run(_main(json.loads(sys.argv[1])))
