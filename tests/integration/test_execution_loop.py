"""Async handlers in the worker's event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringcron.clock import SystemClock
from ringcron.models import RunOutcome
from ringcron_shard_worker.execution import Execution, RunControl, StopReason
from tests.support.execution_program import make_execution, make_request
from tests.support.marker import Marker
from tests.support.waiting import until

CLOCK = SystemClock()


def trusted(seconds: float = 60.0) -> RunControl:
    return RunControl(CLOCK.elapsed() + seconds)


@pytest.fixture
async def execution() -> AsyncIterator[Execution]:
    execution = make_execution(grace_seconds=0.3)
    await execution.start()
    yield execution
    await execution.close()


@pytest.fixture
def marker(tmp_path: Path) -> Marker:
    """The file by which a handler tells that it has started."""
    return Marker(tmp_path / "marker")


async def test_a_handler_gets_its_payload_and_its_run_and_returns_the_result(execution: Execution) -> None:
    request = make_request("echo", {"a": [1, None]}, attempt=3)
    result = await execution.run(request, trusted())

    assert result.outcome is RunOutcome.SUCCEEDED
    assert result.result is not None
    answer = json.loads(result.result)
    assert answer["payload"] == {"a": [1, None]}
    assert (answer["run"], answer["attempt"]) == (request.run_id, 3)


@pytest.mark.parametrize(
    "raised", ["SystemExit(3)", "KeyboardInterrupt()", "ValueError('no')", "asyncio.CancelledError()"]
)
async def test_whatever_a_handler_raises_fails_its_run_and_nothing_else(execution: Execution, raised: str) -> None:
    result = await execution.run(make_request("raise", raised), trusted())

    assert result.outcome is RunOutcome.FAILED
    assert str(result.error).startswith(raised.split("(")[0].removeprefix("asyncio."))
    assert "sample_handlers.py" in str(result.error)
    assert "ringcron_shard_worker" not in str(result.error)
    assert (await execution.run(make_request("echo"), trusted())).outcome is RunOutcome.SUCCEEDED


async def test_a57_hostile_text(execution: Execution) -> None:
    result = await execution.run(make_request("raise", r"ValueError('\0 \ud800 ' + 'x' * 1000000)"), trusted())

    assert result.outcome is RunOutcome.FAILED
    assert str(result.error).startswith("ValueError: \ufffd \ufffd xxx")
    assert len(str(result.error)) < 8192


async def test_fail_carries_what_the_handler_asks_for(execution: Execution) -> None:
    result = await execution.run(make_request("refuse"), trusted())

    assert (result.outcome, result.error) == (RunOutcome.FAILED, "not today")
    assert (result.retry_after_seconds, result.dead) == (90, True)


async def test_a_result_that_is_no_json_fails_the_run(execution: Execution) -> None:
    result = await execution.run(make_request("give", "{1, 2}"), trusted())

    assert result.outcome is RunOutcome.FAILED
    assert "cannot be written as JSON" in str(result.error)


async def test_a_handler_that_is_not_here_fails_the_run(execution: Execution) -> None:
    result = await execution.run(make_request("nobody's"), trusted())

    assert result.outcome is RunOutcome.FAILED
    assert 'no handler "nobody\'s" here' in str(result.error)


async def test_a_timeout_cancels_the_handler(execution: Execution, marker: Marker) -> None:
    result = await execution.run(make_request("wait", str(marker), timeout=0.2), trusted())

    assert result.outcome is RunOutcome.TIMED_OUT
    assert result.error == "timed out after 0.2 s"
    assert marker.said() == "cancelled"


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (StopReason.CANCEL_REQUESTED, RunOutcome.CANCELLED),
        (StopReason.DRAINED, RunOutcome.INTERRUPTED),
        (StopReason.TRUST_ENDED, RunOutcome.INTERRUPTED),
        (StopReason.LEASE_LOST, RunOutcome.INTERRUPTED),
    ],
)
async def test_a_handler_is_stopped(
    execution: Execution, marker: Marker, reason: StopReason, outcome: RunOutcome
) -> None:
    control = trusted()
    run = asyncio.create_task(execution.run(make_request("wait", str(marker)), control))
    await until(marker.said)
    control.stop(reason)
    control.stop(StopReason.CANCEL_REQUESTED)  # the first reason counts
    result = await run

    assert result.outcome is outcome
    assert reason.value in str(result.error)
    assert marker.said() == "cancelled"


async def test_a_run_that_is_stopped_before_it_starts_does_not_start(execution: Execution, marker: Marker) -> None:
    control = trusted()
    control.stop(StopReason.CANCEL_REQUESTED)
    cancelled = await execution.run(make_request("wait", str(marker)), control)
    untrusted = await execution.run(make_request("wait", str(marker)), trusted(0.1))

    assert cancelled.outcome is RunOutcome.CANCELLED
    assert untrusted.outcome is RunOutcome.INTERRUPTED
    assert marker.said() is None


async def test_a_handler_is_asked_one_grace_before_its_trust_ends(execution: Execution, marker: Marker) -> None:
    control = trusted(1.0)
    result = await execution.run(make_request("wait", str(marker)), control)

    assert result.outcome is RunOutcome.INTERRUPTED
    assert CLOCK.elapsed() < control.trust_until


async def test_renewals_keep_a_handler_running(execution: Execution, marker: Marker) -> None:
    control = trusted(1.0)
    run = asyncio.create_task(execution.run(make_request("finish-late", str(marker)), control))
    await until(marker.said)
    first_end = control.trust_until
    while CLOCK.elapsed() < first_end + 0.2:
        control.extend(CLOCK.elapsed() + 1.0)
        await asyncio.sleep(0.05)
    marker.sibling("go").say("go")
    result = await run

    assert (result.outcome, result.result) == (RunOutcome.SUCCEEDED, b'"finished"')
    assert not marker.sibling("asked").said()


async def test_a_handler_that_swallows_its_cancellation_keeps_its_run_open(
    execution: Execution, marker: Marker
) -> None:
    """As long as its lease is renewed; so the job never runs twice at a time."""
    control = trusted(60)
    run = asyncio.create_task(execution.run(make_request("finish-late", str(marker), timeout=0.1), control))
    await until(marker.sibling("asked").said)
    done, _ = await asyncio.wait((run,), timeout=1.0)
    assert not done

    marker.sibling("go").say("go")
    assert (await run).outcome is RunOutcome.TIMED_OUT


async def test_a_thousand_runs_at_once(execution: Execution) -> None:
    runs: list[Any] = [execution.run(make_request("echo", number), trusted()) for number in range(1000)]
    results = await asyncio.gather(*runs)

    assert [json.loads(result.result)["payload"] for result in results] == list(range(1000))


async def test_a_run_that_nobody_waits_for_any_more_is_stopped(execution: Execution, marker: Marker) -> None:
    run = asyncio.create_task(execution.run(make_request("wait", str(marker)), trusted()))
    await until(marker.said)
    run.cancel()

    await until(lambda: marker.said() == "cancelled")
    assert run.cancelled()
