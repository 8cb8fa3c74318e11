"""The command handler, as a worker runs it: in a handler process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ringcron.clock import SystemClock
from ringcron.models import RunOutcome
from ringcron_shard_worker.execution import Execution, RunControl, RunResult, StopReason
from tests.support.execution_program import make_execution, make_request
from tests.support.marker import Marker
from tests.support.waiting import until

CLOCK = SystemClock()


@pytest.fixture
async def execution() -> AsyncIterator[Execution]:
    execution = make_execution(grace_seconds=0.5)
    await execution.start()
    yield execution
    await execution.close()


@pytest.fixture
def marker(tmp_path: Path) -> Marker:
    return Marker(tmp_path / "marker")


def gone(pid: int) -> bool:
    """Whether no such process runs."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def run(execution: Execution, timeout: float | None = None, **payload: Any) -> RunResult:
    control = RunControl(CLOCK.elapsed() + 60)
    return await execution.run(make_request("command", payload, timeout=timeout), control)


async def output(execution: Execution, **payload: Any) -> str:
    result = await run(execution, **payload)
    assert result.outcome is RunOutcome.SUCCEEDED, result.error
    assert result.result is not None
    said: dict[str, Any] = json.loads(result.result)
    assert said["exitStatus"] == 0
    return str(said["output"])


async def test_a_command_that_ends_well(execution: Execution, tmp_path: Path) -> None:
    assert await output(execution, argv=["echo", "a b", "$HOME"]) == "a b $HOME\n"
    assert await output(execution, shell="echo out; echo err >&2; pwd", cwd=str(tmp_path)) == f"out\nerr\n{tmp_path}\n"
    assert await output(execution, shell="cat; echo $GREETING", stdin="a\nb\n", env={"GREETING": "hi"}) == "a\nb\nhi\n"
    assert await output(execution, argv=["cat"]) == ""
    assert await output(execution, shell="echo $0", env={"SHELL": "/bin/bash"}) == "/bin/bash\n"


async def test_a_command_knows_its_run_and_not_the_workers_settings(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGCRON_DATABASE_URL", "postgresql://user:secret@host/db")
    monkeypatch.setenv("HARMLESS", "yes")
    fresh = make_execution()
    await fresh.start()
    said = await output(fresh, shell="env", env={"RINGCRON_RUN_ID": "forged"})
    await fresh.close()
    names = {line.split("=")[0] for line in said.splitlines() if line.startswith("RINGCRON_")}

    assert names == {
        "RINGCRON_JOB_ID",
        "RINGCRON_RUN_ID",
        "RINGCRON_SCHEDULED_FOR",
        "RINGCRON_ATTEMPT",
        "RINGCRON_LEASE_GENERATION",
    }
    assert "secret" not in said
    assert "forged" not in said
    assert "RINGCRON_SCHEDULED_FOR=2030-01-02T03:04:05Z" in said
    assert "HARMLESS=yes" in said


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"shell": "echo why; exit 3"}, "exit status 3: why"),
        ({"shell": "kill -9 $$"}, "ended by signal 9"),
        ({"argv": ["/does/not/exist"]}, "cannot start '/does/not/exist'"),
        ({"argv": ["ls"], "cwd": "/does/not/exist"}, "cannot start 'ls'"),
    ],
)
async def test_a_command_that_fails(execution: Execution, payload: dict[str, Any], said: str) -> None:
    result = await run(execution, **payload)

    assert result.outcome is RunOutcome.FAILED
    assert said in str(result.error)
    assert not result.dead


async def test_a_bad_payload_is_dead_at_once(execution: Execution) -> None:
    result = await run(execution, argv=["ls"], shell="ls")

    assert (result.outcome, result.dead) == (RunOutcome.FAILED, True)
    assert result.error == "payload must have either argv or shell"


async def test_the_end_of_the_output_is_kept(execution: Execution) -> None:
    said = await output(execution, shell="seq 1 100000; printf 'a\\000b\\377'")
    assert len(said.encode()) <= 8192 + 16
    assert said.endswith("99999\n100000\na\ufffdb\ufffd")

    failed = await run(execution, shell="seq 1 100000; exit 1")
    assert str(failed.error).startswith("exit status 1: ")
    assert str(failed.error).endswith("99999\n100000")
    assert len(str(failed.error)) <= 8192


async def test_a_large_input_to_a_command_that_does_not_read_it(execution: Execution) -> None:
    assert await output(execution, argv=["true"], stdin="x" * 250_000) == ""
    assert await output(execution, shell="wc -c", stdin="x" * 250_000) == "250000\n"


async def test_a_command_that_closes_its_output_is_waited_for(execution: Execution, marker: Marker) -> None:
    assert await output(execution, shell=f"exec >&- 2>&-; sleep 0.3; echo done > {marker}") == ""
    assert marker.said() == "done\n"


@pytest.mark.parametrize("polite", [True, False])
async def test_a_command_and_what_it_started_are_ended_at_the_timeout(
    execution: Execution, marker: Marker, polite: bool
) -> None:
    trap = "" if polite else "trap '' TERM;"
    shell = f"{trap} sh -c '{trap} echo $$ > {marker}; sleep 1000; sleep 1000' & wait; wait; sleep 1000"
    running = asyncio.create_task(run(execution, timeout=0.5, shell=shell))
    grandchild = await marker.pid()
    result = await running

    assert result.outcome is RunOutcome.TIMED_OUT
    await until(lambda: gone(grandchild), seconds=3)


async def test_a_command_is_cancelled(execution: Execution, marker: Marker) -> None:
    control = RunControl(CLOCK.elapsed() + 60)
    request = make_request("command", {"shell": f"echo $$ > {marker}; exec sleep 1000"})
    running = asyncio.create_task(execution.run(request, control))
    pid = await marker.pid()
    control.stop(StopReason.CANCEL_REQUESTED)
    result = await running

    assert result.outcome is RunOutcome.CANCELLED
    await until(lambda: gone(pid), seconds=3)


@pytest.mark.parametrize("how", ["sleep 1000", "timeout 1000 sleep 1000", "(sleep 1000 & sleep 1000)"])
async def test_what_a_command_leaves_running_ends_with_it(execution: Execution, marker: Marker, how: str) -> None:
    said = await output(execution, shell=f"sh -c 'echo $$ > {marker}; exec {how.strip('()')}' & sleep 0.2; echo over")
    left = await marker.pid()

    assert said == "over\n"
    await until(lambda: gone(left), seconds=3)


async def test_a_daemon_that_begins_a_session_of_its_own_goes_on(execution: Execution, marker: Marker) -> None:
    """Started as a service is started, it is meant to outlive the command."""
    daemon_shell = f"setsid sh -c 'echo $$ > {marker}; exec sleep 1000 > /dev/null 2>&1' &"
    await output(execution, shell=f"{daemon_shell} while ! test -s {marker}; do sleep 0.01; done")
    daemon = psutil.Process(await marker.pid())
    await output(execution, argv=["true"])

    assert daemon.is_running()
    daemon.kill()


async def test_a_command_that_kills_its_parent_fails_and_the_worker_lives(execution: Execution) -> None:
    result = await run(execution, shell="kill -9 $PPID; sleep 1000")

    assert result.outcome is RunOutcome.FAILED
    assert "signal 9" in str(result.error)
    assert await output(execution, argv=["echo", "next"]) == "next\n"


async def test_a_command_may_signal_its_whole_group(execution: Execution) -> None:
    result = await run(execution, shell="trap 'exit 0' TERM; kill 0; sleep 1000")

    assert result.outcome is RunOutcome.SUCCEEDED


async def test_commands_that_are_not_allowed_do_not_exist() -> None:
    execution = make_execution(allow_commands=False)
    await execution.start()
    result = await run(execution, argv=["true"])
    await execution.close()

    assert result.outcome is RunOutcome.FAILED
    assert "no handler 'command' here" in str(result.error)
