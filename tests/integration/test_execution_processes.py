"""Plain functions and quarantined jobs, each in a handler process."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from ringcron.clock import SystemClock
from ringcron.models import RunOutcome
from ringcron_shard_worker.execution import Execution, RunControl, RunResult, StopReason
from tests.support.execution_program import make_execution, make_request
from tests.support.marker import Marker
from tests.support.waiting import until

CLOCK = SystemClock()


def trusted(seconds: float = 60.0) -> RunControl:
    return RunControl(CLOCK.elapsed() + seconds)


def gone(pid: int) -> bool:
    """Whether no such process runs."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def value_of(result: RunResult) -> object:
    assert result.outcome is RunOutcome.SUCCEEDED, result.error
    return None if result.result is None else json.loads(result.result)


@pytest.fixture
async def execution() -> AsyncIterator[Execution]:
    others = set(psutil.Process().children())  # the servers of other tests
    execution = make_execution(grace_seconds=0.5)
    await execution.start()
    yield execution
    ours = [child for child in psutil.Process().children() if child not in others]
    children = [*ours, *(grandchild for child in ours for grandchild in child.children(recursive=True))]
    await execution.close()
    assert all(gone(child.pid) for child in children)


@pytest.fixture
def marker(tmp_path: Path) -> Marker:
    return Marker(tmp_path / "marker")


async def echo_pid(execution: Execution) -> int:
    answer = value_of(await execution.run(make_request("echo-sync"), trusted()))
    assert isinstance(answer, dict)
    return int(answer["pid"])


async def test_a_plain_function_runs_in_another_process_that_is_used_again(execution: Execution) -> None:
    request = make_request("echo-sync", {"a": ["é", None]}, attempt=2)
    answer = value_of(await execution.run(request, trusted()))

    assert isinstance(answer, dict)
    assert answer["payload"] == {"a": ["é", None]}
    assert (answer["run"], answer["attempt"]) == (request.run_id, 2)
    assert answer["pid"] != os.getpid()
    assert await echo_pid(execution) == answer["pid"]
    assert os.getsid(answer["pid"]) == answer["pid"]


async def test_two_runs_at_a_time_are_in_two_processes(execution: Execution, tmp_path: Path) -> None:
    markers = [Marker(tmp_path / "one"), Marker(tmp_path / "two")]
    runs = [asyncio.create_task(execution.run(make_request("until-file", str(m)), trusted())) for m in markers]
    pids = {await marker.pid() for marker in markers}
    for marker in markers:
        marker.sibling("go").say("go")

    assert len(pids) == 2
    assert [value_of(result) for result in await asyncio.gather(*runs)] == ["did all of it"] * 2


async def test_a_function_that_returns_an_awaitable(execution: Execution) -> None:
    answer = value_of(await execution.run(make_request("async-in-disguise", 5), trusted()))

    assert isinstance(answer, dict)
    assert (answer["payload"], answer["pid"] != os.getpid()) == (5, True)


async def test_a_quarantined_job_runs_in_a_process_that_is_not_used_again(execution: Execution) -> None:
    answer = value_of(await execution.run(make_request("echo", solo=True), trusted()))

    assert isinstance(answer, dict)
    assert answer["pid"] != os.getpid()
    assert gone(answer["pid"])


@pytest.mark.parametrize("raised", ["SystemExit(3)", "KeyboardInterrupt()", "ValueError('no')"])
async def test_whatever_a_handler_raises_fails_its_run_and_its_process_lives_on(
    execution: Execution, raised: str
) -> None:
    before = await echo_pid(execution)
    result = await execution.run(make_request("raise-sync", raised), trusted())

    assert result.outcome is RunOutcome.FAILED
    assert str(result.error).startswith(raised.split("(")[0])
    assert "ringcron_shard_worker" not in str(result.error)
    assert await echo_pid(execution) == before


@pytest.mark.parametrize(("how", "said"), [(-9, "signal 9 (SIGKILL)"), (-11, "signal 11"), (3, "exit status 3")])
async def test_a_handler_that_ends_its_process_fails(execution: Execution, how: int, said: str) -> None:
    result = await execution.run(make_request("die", how), trusted())

    assert result.outcome is RunOutcome.FAILED
    assert said in str(result.error)
    assert await echo_pid(execution)


async def test_a_handler_sees_that_it_is_cancelled(execution: Execution, marker: Marker) -> None:
    control = trusted()
    run = asyncio.create_task(execution.run(make_request("until-cancelled", str(marker)), control))
    pid = await marker.pid()
    control.stop(StopReason.CANCEL_REQUESTED)
    result = await run

    assert result.outcome is RunOutcome.CANCELLED
    assert "killed" not in str(result.error)
    assert await echo_pid(execution) == pid


async def test_a_handler_that_finishes_without_looking_has_done_its_work(execution: Execution, marker: Marker) -> None:
    control = trusted()
    run = asyncio.create_task(execution.run(make_request("until-file", str(marker)), control))
    await marker.pid()
    control.stop(StopReason.DRAINED)
    marker.sibling("go").say("go")

    assert value_of(await run) == "did all of it"


async def test_a_handler_that_holds_the_gil_is_killed_after_its_timeout_and_one_grace(
    execution: Execution, marker: Marker
) -> None:
    run = asyncio.create_task(execution.run(make_request("hold-gil", str(marker), timeout=0.3), trusted()))
    pid = await marker.pid()
    result = await run

    assert result.outcome is RunOutcome.TIMED_OUT
    assert result.error == "timed out after 0.3 s; its process was killed"
    assert gone(pid)


async def test_a_handler_that_holds_the_gil_is_killed_when_renewals_stop_and_the_worker_lives(
    execution: Execution, marker: Marker
) -> None:
    await echo_pid(execution)  # a process is ready
    control = trusted(1.5)
    run = asyncio.create_task(execution.run(make_request("hold-gil", str(marker)), control))
    pid = await marker.pid()
    first_end = control.trust_until
    control.extend(first_end + 1.0)
    result = await run

    assert CLOCK.elapsed() >= first_end
    assert CLOCK.elapsed() < control.trust_until + 3
    assert result.outcome is RunOutcome.INTERRUPTED
    assert gone(pid)
    assert await echo_pid(execution)


async def test_a_lost_lease_leaves_no_grace(execution: Execution, marker: Marker) -> None:
    control = trusted()
    run = asyncio.create_task(execution.run(make_request("until-file", str(marker)), control))
    pid = await marker.pid()
    control.stop(StopReason.LEASE_LOST)
    result = await run

    assert result.outcome is RunOutcome.INTERRUPTED
    assert gone(pid)


@pytest.mark.parametrize("where", ["same group", "own group"])
async def test_a_child_that_a_run_left_behind_is_ended_with_it(execution: Execution, where: str) -> None:
    before = await echo_pid(execution)
    child = value_of(await execution.run(make_request("leave-child", where), trusted()))

    assert isinstance(child, int)
    await until(lambda: gone(child))
    assert gone(before)


async def test_a_thread_that_a_run_left_behind_is_ended_with_its_process(execution: Execution) -> None:
    pid = value_of(await execution.run(make_request("leave-thread"), trusted()))

    assert isinstance(pid, int)
    assert gone(pid)


async def test_what_a_handler_prints_comes_out(execution: Execution, capfd: pytest.CaptureFixture[str]) -> None:
    await execution.run(make_request("print", "hello"), trusted())

    assert "hello\n" in capfd.readouterr().out


async def test_what_a_handler_logs_comes_out_with_its_run(
    execution: Execution, capfd: pytest.CaptureFixture[str]
) -> None:
    request = make_request("log-plainly", "postgresql://me:hush@host/db")
    await execution.run(request, trusted())
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]

    assert [(line["event"], line["run"]) for line in lines] == [("made postgresql://me:***@host/db", request.run_id)]


async def test_a_quarantined_log_job_logs_in_the_same_form(
    execution: Execution, capfd: pytest.CaptureFixture[str]
) -> None:
    """It brings structlog into the handler process."""
    request = make_request("log", {"a": 1}, solo=True)
    await execution.run(request, trusted())
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]

    assert [(line["event"], line["run"], line["payload"]) for line in lines] == [("job ran", request.run_id, '{"a":1}')]


async def test_processes_that_were_not_needed_for_a_while_are_ended_but_one(tmp_path: Path) -> None:
    execution = make_execution(idle_seconds=0.2)
    await execution.start()
    markers = [Marker(tmp_path / str(number)) for number in range(3)]
    runs = [asyncio.create_task(execution.run(make_request("until-file", str(m)), trusted())) for m in markers]
    pids = [await marker.pid() for marker in markers]
    for marker in markers:
        marker.sibling("go").say("go")
    await asyncio.gather(*runs)

    await until(lambda: sum(gone(pid) for pid in pids) >= 2)
    assert await echo_pid(execution)
    await execution.close()


async def test_an_idle_process_that_dies_is_replaced(execution: Execution) -> None:
    pid = await echo_pid(execution)
    psutil.Process(pid).kill()

    assert await echo_pid(execution) != pid


async def test_a_run_that_nobody_waits_for_any_more_is_killed(execution: Execution, marker: Marker) -> None:
    run = asyncio.create_task(execution.run(make_request("until-file", str(marker)), trusted()))
    pid = await marker.pid()
    run.cancel()

    await until(lambda: gone(pid))


async def test_modules_that_a_handler_process_cannot_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "moody_handlers.py"
    module.write_text("import os\nif os.environ.get('MOODY'): raise RuntimeError('not in this mood')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    execution = make_execution()
    monkeypatch.setenv("MOODY", "1")
    execution._pool._hello["modules"] = ["moody_handlers"]
    await execution.start()
    result = await execution.run(make_request("echo-sync"), trusted())
    await execution.close()

    assert result.outcome is RunOutcome.INTERRUPTED
    assert "not in this mood" in str(result.error)


async def test_stopping_a_run_whose_process_is_still_starting(execution: Execution) -> None:
    control = trusted()
    run = asyncio.create_task(execution.run(make_request("echo-sync", solo=True), control))
    await asyncio.sleep(0)
    control.stop(StopReason.DRAINED)

    assert (await run).outcome is RunOutcome.INTERRUPTED
    assert await echo_pid(execution)


@pytest.mark.parametrize("fault", ["out of files", "it ends before it is ready"])
async def test_where_no_process_can_be_started_the_run_is_handed_back(
    execution: Execution, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A machine out of files or memory is no fault of the job: nothing is spent; the worker claims less for a while."""
    await until(lambda: not execution._pool._starting, what="the first process is ready")
    await execution.run(make_request("die", 3), trusted())  # in that one
    if fault == "out of files":
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) // 2, limits[1]))
        try:
            result = await execution.run(make_request("echo-sync"), trusted())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    else:
        with monkeypatch.context() as broken:
            broken.setenv("PYTHONHOME", "/nowhere")
            result = await execution.run(make_request("echo-sync"), trusted())
    assert result.outcome is RunOutcome.INTERRUPTED
    assert result.error is not None
    assert result.error.startswith("not started: ")
    assert 0 < result.trouble_seconds <= 1

    assert await echo_pid(execution)
    assert not (await execution.run(make_request("echo-sync"), trusted())).trouble_seconds
