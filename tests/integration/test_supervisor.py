"""The supervisor of `ringcron up`, with small shell programs for children."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from ringcron.clock import SystemClock
from ringcron.local.errors import LocalServerError
from ringcron.local.processes import launch
from ringcron.local.supervisor import Child, Supervisor
from tests.support.waiting import until

pytestmark = pytest.mark.processes

Make = Callable[..., Child]


class Recorder:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.changes = 0

    def changed(self) -> None:
        self.changes += 1


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def supervisor(recorder: Recorder) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(SystemClock(), say=recorder.said.append, changed=recorder.changed)
    yield supervisor
    await supervisor.stop()


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(name: str, script: str, *, stage: int = 0, **keywords: object) -> Child:
        log = tmp_path / f"{name}.log"

        def spawn() -> subprocess.Popen[bytes]:
            return launch(["sh", "-c", script], environment={**os.environ, "FOLDER": str(tmp_path)}, log=log)

        return Child(role="worker", name=name, stage=stage, spawn=spawn, log=log, **keywords)  # type: ignore[arg-type]

    return make


SLEEPER = "trap 'echo $NAME >> \"$FOLDER/ended\"; exit 0' TERM; while :; do sleep 0.02; done"


async def test_what_ends_is_started_again_and_said(supervisor: Supervisor, recorder: Recorder, make: Make) -> None:
    child = make("w", "exec sleep 1000")
    await supervisor.start(child)
    supervisor.keep()
    for restarts in (1, 2):
        old = child.pid
        os.kill(old, signal.SIGKILL)
        await until(lambda n=restarts: recorder.changes == n)
        assert child.pid != old
    assert recorder.said[0] == "w was ended by SIGKILL; it is started again in 0.2 s"
    assert recorder.said[1] == "w was ended by SIGKILL; it is started again in 0.4 s"


async def test_a_child_that_ends_before_it_is_ready_ends_the_start_with_its_log(
    supervisor: Supervisor, make: Make
) -> None:
    with pytest.raises(LocalServerError, match=r"w ended with exit code 3:\nwhy it ended"):
        await supervisor.start(make("w", "echo why it ended; exit 3", is_ready=lambda: False))


async def test_children_are_stopped_stage_by_stage_in_reverse_order(
    supervisor: Supervisor, make: Make, tmp_path: Path
) -> None:
    for stage, name in enumerate(["servers", "workers", "api"]):
        await supervisor.start(make(name, f"NAME={name}; {SLEEPER} ", stage=stage))
    supervisor.keep()
    await until(lambda: all(psutil.Process(child.pid).children() for child in supervisor.children))  # traps are set
    await supervisor.stop()
    assert (tmp_path / "ended").read_text().split() == ["api", "workers", "servers"]
    assert all(child.process is not None and child.process.poll() is not None for child in supervisor.children)


async def test_one_that_does_not_stop_in_time_is_killed(supervisor: Supervisor, recorder: Recorder, make: Make) -> None:
    stubborn = make("stubborn", "trap '' TERM; while :; do sleep 0.02; done", stop_seconds=0.5)
    await supervisor.start(stubborn)
    await until(lambda: psutil.Process(stubborn.pid).children())
    await supervisor.stop()
    assert stubborn.process is not None
    assert stubborn.process.returncode == -signal.SIGKILL
    assert recorder.said == ["stubborn did not stop within 0.5 s: killed"]


async def test_a_paused_child_that_winds_up_is_stopped_too(supervisor: Supervisor, make: Make, tmp_path: Path) -> None:
    child = make("w", f"NAME=w; {SLEEPER}", stop_seconds=60)
    await supervisor.start(child)
    await until(lambda: psutil.Process(child.pid).children())  # the trap is set
    os.kill(child.pid, signal.SIGSTOP)
    await supervisor.stop()
    assert child.process is not None
    assert child.process.returncode == 0
    assert (tmp_path / "ended").read_text() == "w\n"
