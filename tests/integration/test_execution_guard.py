"""The guard, with real workers that are killed, stopped, blocked and disobeyed: tests/support/execution_program.py.

Where a test sleeps, it lets time pass in which something must *not* happen.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from ringcron.clock import SystemClock
from ringcron.models import RunOutcome
from ringcron_shard_worker.execution import RunControl
from tests.support.execution_program import make_execution, make_request
from tests.support.marker import Marker
from tests.support.waiting import until

pytestmark = pytest.mark.processes

CLOCK = SystemClock()
ROOT = Path(__file__).parents[2]


def gone(pid: int) -> bool:
    """Whether no such process runs."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Worker:
    """The program, and what it says."""

    def __init__(self, process: asyncio.subprocess.Process, started_at: float) -> None:
        self._process = process
        self.started_at = started_at
        self.guard = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    async def says(self, event: str) -> dict[str, Any]:
        """The next line, which has to be this event."""
        assert self._process.stdout is not None
        async with asyncio.timeout(30):
            line = await self._process.stdout.readline()
        assert line, f"the worker ended with {await self._process.wait()} instead of saying {event}"
        said: dict[str, Any] = json.loads(line)
        assert said["event"] == event, said
        return said

    async def ended(self, *, seconds: float = 30) -> int:
        async with asyncio.timeout(seconds):
            return await self._process.wait()

    async def complaints(self) -> str:
        assert self._process.stderr is not None
        return (await self._process.stderr.read()).decode()

    def let_go(self) -> None:
        """Close our ends of its pipes, which a process that it has left behind may hold open."""
        transport: asyncio.SubprocessTransport = self._process._transport  # type: ignore[attr-defined]
        transport.close()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)


@pytest.fixture
async def workers() -> AsyncIterator[list[Worker]]:
    started: list[Worker] = []
    yield started
    for worker in started:
        if not gone(worker.pid):
            worker.send(signal.SIGKILL)
        await worker.ended()
        await until(partial(gone, worker.guard), what="the guard has ended")
        worker.let_go()


async def start(workers: list[Worker], *runs: tuple[str, Any], **wish: Any) -> Worker:
    wish["runs"] = [{"handler": handler, "payload": payload} for handler, payload in runs]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.execution_program", json.dumps(wish), cwd=ROOT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    worker = Worker(process, CLOCK.elapsed())
    workers.append(worker)
    worker.guard = (await worker.says("ready"))["guard"]
    worker.started_at = CLOCK.elapsed()
    return worker


@pytest.fixture
def marker(tmp_path: Path) -> Marker:
    return Marker(tmp_path / "marker")


def shell(marker: Marker) -> dict[str, str]:
    """A command with a grandchild in a group of its own, as `timeout` makes one; writes the grandchild's pid."""
    return {"shell": f"timeout 1000 sh -c 'echo $$ > {marker}; exec sleep 1000' & wait"}


async def test_nothing_of_a_killed_worker_goes_on(workers: list[Worker], tmp_path: Path) -> None:
    markers = [Marker(tmp_path / name) for name in ("gil", "command", "polite")]
    worker = await start(
        workers,
        ("hold-gil", str(markers[0])),
        ("command", shell(markers[1])),
        ("until-cancelled", str(markers[2])),
        trust=600,
    )
    pids = [await marker.pid() for marker in markers]
    assert not any(gone(pid) for pid in pids)
    worker.send(signal.SIGKILL)
    killed_at = CLOCK.elapsed()

    await until(lambda: all(gone(pid) for pid in [*pids, worker.guard]), seconds=3)
    assert CLOCK.elapsed() < killed_at + 3  # promised: one second


async def test_nothing_goes_on_when_worker_and_guard_are_killed_but_a_command_that_left_its_group(
    workers: list[Worker], marker: Marker
) -> None:
    """Without the guard the kernel's parent-death signal ends the handler process."""
    worker = await start(workers, ("hold-gil", str(marker)), trust=600)
    pid = await marker.pid()
    os.kill(worker.guard, signal.SIGSTOP)
    worker.send(signal.SIGKILL)

    await until(lambda: gone(pid), seconds=3)
    os.kill(worker.guard, signal.SIGKILL)


async def test_what_handlers_in_the_loop_of_a_killed_worker_had_started_is_ended(
    workers: list[Worker], marker: Marker
) -> None:
    worker = await start(workers, ("start-children", str(marker)), trust=600)
    program, copy, daemon = map(int, str(await until(marker.said)).split())
    worker.send(signal.SIGKILL)

    await until(lambda: gone(program) and gone(copy))
    assert not gone(daemon)  # it began a session of its own
    os.kill(daemon, signal.SIGKILL)


async def test_a_handler_process_of_a_stopped_worker_is_killed_on_time_and_the_worker_may_wake(
    workers: list[Worker], tmp_path: Path
) -> None:
    sync, in_loop = Marker(tmp_path / "sync"), Marker(tmp_path / "loop")
    worker = await start(workers, ("until-file", str(sync)), ("wait", str(in_loop)), trust=4, linger=1.5)
    pid = await sync.pid()
    await until(in_loop.said)
    trust_ends = worker.started_at + 4
    worker.send(signal.SIGSTOP)

    await until(lambda: gone(pid), seconds=12)
    assert CLOCK.elapsed() > trust_ends - 2
    await asyncio.sleep(max(0.0, trust_ends + 1.5 - CLOCK.elapsed()))
    assert psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED
    worker.send(signal.SIGCONT)

    outcomes = [(await worker.says("ended"))["outcome"] for _ in range(2)]
    assert outcomes == [RunOutcome.INTERRUPTED] * 2
    assert in_loop.said() == "cancelled"
    await worker.says("closed")
    assert await worker.ended() == 0


async def test_a_worker_that_wakes_and_whose_handler_does_not_let_go_exits(
    workers: list[Worker], marker: Marker
) -> None:
    worker = await start(workers, ("swallow", str(marker)), trust=1.5)
    await marker.pid()
    worker.send(signal.SIGSTOP)
    await asyncio.sleep(2.5)
    worker.send(signal.SIGCONT)

    assert await worker.ended(seconds=6) in (70, -signal.SIGABRT)  # by itself, or on a busy machine by the guard
    assert marker.sibling("asked").said()


async def test_a_worker_that_wakes_and_whose_loop_does_not_turn_is_killed(
    workers: list[Worker], marker: Marker
) -> None:
    worker = await start(workers, ("block-loop", str(marker)), trust=1.5)
    await marker.pid()
    worker.send(signal.SIGSTOP)
    await asyncio.sleep(2.5)
    assert not gone(worker.pid)
    worker.send(signal.SIGCONT)

    assert await worker.ended(seconds=6) == -signal.SIGABRT


async def test_a_handler_that_swallows_cancellation_takes_the_worker_with_it(
    workers: list[Worker], tmp_path: Path
) -> None:
    marker, other = Marker(tmp_path / "swallow"), Marker(tmp_path / "other")
    worker = await start(workers, ("swallow", str(marker)), ("command", shell(other)), trust=3)
    await marker.pid()
    grandchild = await other.pid()
    status = await worker.ended()

    assert CLOCK.elapsed() < worker.started_at + 3 + 3
    assert status == 70
    assert marker.sibling("asked").said()
    complaints = await worker.complaints()
    assert "the worker exits" in complaints
    assert "sample_handlers.py" in complaints
    await until(lambda: gone(grandchild), seconds=3)


@pytest.mark.parametrize("handler", ["block-loop", "hold-gil-async"])
async def test_a_handler_that_blocks_the_loop_takes_the_worker_with_it(
    workers: list[Worker], marker: Marker, handler: str
) -> None:
    worker = await start(workers, (handler, str(marker)), trust=1.5)
    await marker.pid()
    status = await worker.ended()

    assert CLOCK.elapsed() < worker.started_at + 1.5 + 3
    assert status == -signal.SIGABRT
    complaints = await worker.complaints()
    assert "sample_handlers.py" in complaints  # faulthandler: where it hung
    assert "the worker is killed" in complaints


async def test_a_worker_that_renews_is_left_alone(workers: list[Worker], marker: Marker) -> None:
    worker = await start(workers, ("finish-late", str(marker)), ("until-file", str(marker)), trust=1.5, renew=True)
    await until(marker.said)
    await asyncio.sleep(max(0.0, worker.started_at + 4.5 - CLOCK.elapsed()))
    marker.sibling("go").say("go")

    assert [(await worker.says("ended"))["outcome"] for _ in range(2)] == [RunOutcome.SUCCEEDED] * 2
    await worker.says("closed")


async def test_a_worker_in_whose_loop_nothing_runs_is_left_alone(workers: list[Worker]) -> None:
    worker = await start(workers, ("echo", 1), trust=1.5, linger=4)

    assert (await worker.says("ended"))["outcome"] == RunOutcome.SUCCEEDED
    await worker.says("closed")
    assert await worker.ended() == 0


async def test_signals_to_the_whole_service_do_not_end_handlers_or_guard(workers: list[Worker], marker: Marker) -> None:
    """A supervisor may send SIGTERM to every process of the service; the worker drains, and decides."""
    worker = await start(workers, ("until-file", str(marker)), trust=600, linger=1)
    pid = await marker.pid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)
        os.kill(worker.guard, number)
    marker.sibling("go").say("go")

    assert (await worker.says("ended"))["outcome"] == RunOutcome.SUCCEEDED
    assert not gone(worker.guard)
    await worker.says("closed")


async def test_a_guard_that_dies_is_replaced_and_knows_every_deadline(tmp_path: Path) -> None:
    marker = Marker(tmp_path / "marker")
    execution = make_execution(grace_seconds=0.5)
    await execution.start()
    control = RunControl(CLOCK.elapsed() + 3)
    run = asyncio.create_task(execution.run(make_request("hold-gil", str(marker)), control))
    await marker.pid()
    first = execution.guard_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)

    await until(lambda: execution.guard_pid != first)
    assert (await run).outcome is RunOutcome.INTERRUPTED
    assert CLOCK.elapsed() < control.trust_until + 3
    await execution.close()


async def test_a_guard_that_is_stopped_is_replaced_once_its_pipe_is_full() -> None:
    execution = make_execution()
    await execution.start()
    first = execution.guard_pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    for number in range(20_000):
        execution._guard.worker_deadline(CLOCK.elapsed() + 1000 + number)

    await until(lambda: execution.guard_pid != first)
    execution._guard.worker_deadline(float("inf"))
    result = await execution.run(make_request("echo-sync"), RunControl(CLOCK.elapsed() + 60))
    assert result.outcome is RunOutcome.SUCCEEDED
    await execution.close()


async def test_without_any_guard_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = Marker(tmp_path / "marker")
    execution = make_execution(grace_seconds=0.5)
    await execution.start()
    run = asyncio.create_task(execution.run(make_request("hold-gil", str(marker)), RunControl(CLOCK.elapsed() + 60)))
    pid = await marker.pid()
    broken = tmp_path / "guard.py"
    broken.write_text("raise SystemExit(1)\n")
    monkeypatch.setattr("ringcron_shard_worker.execution.guard_link.PROGRAM", broken)
    assert execution.guard_pid is not None
    os.kill(execution.guard_pid, signal.SIGKILL)

    assert (await run).outcome is RunOutcome.INTERRUPTED
    assert gone(pid)
    await execution.close()
