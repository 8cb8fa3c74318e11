"""Which built-in handlers there are, and what the simple ones do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from ringcron import Fail
from ringcron.errors import ConfigError, HandlerNotFound
from ringcron.handlers import HandlerRegistry
from ringcron_shard_worker.builtin import BuiltinSettings, add_builtin, full_registry
from ringcron_shard_worker.builtin.command import OUTPUT_LIMIT, fitting, read_command
from ringcron_shard_worker.builtin.fail import fail
from ringcron_shard_worker.builtin.log import log
from ringcron_shard_worker.builtin.sleep import sleep
from ringcron_shard_worker.handler_process.context import Context
from ringcron_shard_worker.handler_process.outcome import returned

Handler = Callable[[Context, Any], Awaitable[Any]]


def context(attempt: int = 1) -> Context:
    job_id = UUID(int=1)
    return Context(
        job_id=job_id, run_id=f"{job_id}.1", scheduled_for=datetime.now(UTC), attempt=attempt, lease_generation=1
    )


def test_commands_exist_only_where_they_are_allowed() -> None:
    assert "command" not in full_registry((), BuiltinSettings())
    assert "command" in full_registry((), BuiltinSettings(allow_commands=True))


def test_default_is_what_the_settings_say() -> None:
    assert full_registry((), BuiltinSettings()).get("default").name == "log"
    assert full_registry((), BuiltinSettings(default_handler="sleep")).get("default").name == "sleep"
    with pytest.raises(HandlerNotFound, match="nobody"):
        full_registry((), BuiltinSettings(default_handler="nobody"))


def test_commands_run_in_handler_processes_and_requests_in_the_loop() -> None:
    registry = full_registry((), BuiltinSettings(allow_commands=True))

    assert not registry.get("command").is_async
    assert registry.get("http").is_async


def test_a_users_handler_cannot_take_the_name_of_a_builtin_one() -> None:
    registry = HandlerRegistry()
    registry.register("log", context)
    with pytest.raises(ConfigError, match="'log' is registered twice"):
        add_builtin(registry, "log", BuiltinSettings())


def test_networks_are_checked_when_the_worker_starts() -> None:
    with pytest.raises(ConfigError, match="http_allow"):
        full_registry((), BuiltinSettings(http_allow=("nonsense",)))


def test_settings_survive_the_way_to_a_handler_process() -> None:
    settings = BuiltinSettings(allow_commands=True, http_allow=("127.0.0.0/8",), default_handler="sleep")

    assert BuiltinSettings.from_message({**settings.message(), "http_allow": ["127.0.0.0/8"]}) == settings


async def test_log_takes_anything() -> None:
    assert await log(context(), {"a": [1]}) == {"logged": '{"a":[1]}'}
    long = await log(context(), "x" * 100_000)
    assert len(long["logged"]) < 1100


async def test_fail_fails_always_or_for_the_first_attempts() -> None:
    with pytest.raises(Fail, match="failed as asked"):
        await fail(context(9), None)
    with pytest.raises(Fail, match="no") as caught:
        await fail(context(2), {"message": "no", "times": 2, "retryAfter": 5, "dead": True})
    assert (caught.value.retry_after_seconds, caught.value.dead) == (5, True)
    assert await fail(context(3), {"times": 2}) == {"attempt": 3}


@pytest.mark.parametrize(
    ("function", "payload", "said"),
    [
        (sleep, None, "payload.seconds is required"),
        (sleep, {"seconds": -1}, "payload.seconds must be a number from 0"),
        (sleep, {"seconds": True}, "payload.seconds must be a number"),
        (sleep, {"seconds": "1"}, "payload.seconds must be a number"),
        (sleep, {"second": 1}, "payload.second is not known; did you mean seconds?"),
        (sleep, [1], "payload must be an object with the fields seconds"),
        (fail, {"times": 1.5e300}, "payload.times must be a number"),
        (fail, {"message": 5}, "payload.message must be text"),
        (fail, {"dead": "yes"}, "payload.dead must be true or false"),
    ],
)
async def test_a_bad_payload_names_its_field_and_is_dead_at_once(function: Handler, payload: Any, said: str) -> None:
    with pytest.raises(Fail) as caught:
        await function(context(), payload)

    assert caught.value.dead
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (None, "payload must have either argv or shell"),
        ({"argv": ["a"], "shell": "a"}, "payload must have either argv or shell"),
        ({"argv": []}, "payload.argv must be a list of at least one text"),
        ({"argv": ["a", 1]}, "payload.argv must be a list"),
        ({"argv": "ls"}, "payload.argv must be a list"),
        ({"argv": ["a\0"]}, "payload.argv must be a list"),
        ({"shell": 1}, "payload.shell must be text"),
        ({"shell": "a", "env": {"A": 1}}, "payload.env must be an object"),
        ({"shell": "a", "env": {"A=B": "1"}}, "payload.env.A=B is not the name of a variable"),
        ({"shell": "a", "cwd": 1}, "payload.cwd must be text"),
        ({"shell": "a", "stdin": {}}, "payload.stdin must be text"),
        ({"shel": "a"}, "payload.shel is not known; did you mean shell?"),
    ],
)
def test_bad_commands(payload: Any, said: str) -> None:
    with pytest.raises(Fail) as caught:
        read_command(payload)

    assert caught.value.dead
    assert said in str(caught.value)


def test_the_shell_is_the_one_of_the_jobs_environment() -> None:
    assert read_command({"shell": "x"}).argv == ["/bin/sh", "-c", "x"]
    assert read_command({"shell": "x", "env": {"SHELL": "/bin/bash"}}).argv == ["/bin/bash", "-c", "x"]


@pytest.mark.parametrize(
    "output", [b"x" * OUTPUT_LIMIT, b"\x1b" * OUTPUT_LIMIT, b"\xff" * OUTPUT_LIMIT, b"\0\n" * 4096]
)
def test_the_output_of_a_command_always_fits_into_a_result(output: bytes) -> None:
    result = fitting(output)
    ended = returned(result)

    assert ended.error is None
    assert ended.result is not None
    assert b"left out" not in ended.result
    assert len(result["output"]) > 2000
