"""How one program runs: signals, exit codes, metrics."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringcron.local.processes import free_port, launch
from tests.support.waiting import until_sync

pytestmark = pytest.mark.processes

SCRIPT = """
import asyncio, sys, threading, time
from ringcron import service
from ringcron.errors import ConfigError
from ringcron.settings import WorkerSettings

settings = WorkerSettings.load({}, database_url="postgresql://h/d", zookeeper="none", log_format="json")

async def obeys(drain):
    await drain.wait()

async def hangs(drain):
    await drain.wait()
    await asyncio.sleep(1000)

async def fails(drain):
    raise RuntimeError("at postgresql://me:s3cret@h/d")

async def misconfigured(drain):
    raise ConfigError(["one fault", "another"])

async def says_seven(drain):
    return 7

async def leaves_a_deaf_task(drain):
    async def deaf():
        while True:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass
    deaf.task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    return 3

async def leaves_a_thread(drain):
    threading.Thread(target=time.sleep, args=(1000,)).start()

port = int(sys.argv[2]) if len(sys.argv) > 2 else None
sys.exit(service.run("worker", settings, globals()[sys.argv[1]], name="w-1", metrics_port=port))
"""

Start = Callable[..., tuple[subprocess.Popen[bytes], Callable[[], list[dict[str, Any]]]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(body: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Callable[[], list[dict[str, Any]]]]:
        log = tmp_path / f"{body}.log"
        process = launch([sys.executable, "-c", SCRIPT, body, *arguments], log=log, environment=dict(os.environ))
        started.append(process)
        return process, lambda: [json.loads(line) for line in log.read_text().splitlines()]

    yield start
    for process in started:
        process.kill()
        process.wait()


def events(log: Callable[[], list[dict[str, Any]]]) -> list[str]:
    return [line["event"] for line in log()]


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_drains(start: Start, sign: signal.Signals) -> None:
    process, log = start("obeys")
    until_sync(lambda: "started" in events(log))
    process.send_signal(sign)
    assert process.wait(20) == 0
    assert events(log) == ["started", "draining", "ended"]
    assert {(line["program"], line["name"]) for line in log()} == {("worker", "w-1")}


def test_the_second_signal_ends_the_process_now(start: Start) -> None:
    process, log = start("hangs")
    until_sync(lambda: "started" in events(log))
    process.send_signal(signal.SIGTERM)
    until_sync(lambda: "draining" in events(log))
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 128 + signal.SIGTERM


def test_a_fault_ends_with_1_and_is_logged_without_the_password(start: Start) -> None:
    process, log = start("fails")
    assert process.wait(20) == 1
    line = log()[-1]
    assert line["event"] == "the program failed"
    assert "RuntimeError: at postgresql://me:***@h/d" in line["exception"]


def test_wrong_settings_end_with_2_and_each_fault_is_logged(start: Start) -> None:
    process, log = start("misconfigured")
    assert process.wait(20) == 2
    assert [line["fault"] for line in log() if "fault" in line] == ["one fault", "another"]


def test_a_program_may_choose_its_exit_code(start: Start) -> None:
    assert start("says_seven")[0].wait(20) == 7


@pytest.mark.parametrize(("body", "code"), [("leaves_a_deaf_task", 3), ("leaves_a_thread", 0)])
def test_nothing_left_behind_holds_the_process(start: Start, body: str, code: int) -> None:
    process, log = start(body)
    assert process.wait(20) == code
    assert "ended" in events(log)


def test_metrics_are_served_while_the_program_runs(start: Start) -> None:
    port = free_port()
    process, log = start("obeys", str(port))
    until_sync(lambda: "started" in events(log))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b'ringcron_build_info{version="' in answer.read()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_a_metrics_port_that_is_taken_is_a_wrong_setting(start: Start) -> None:
    port = str(free_port())
    first, log = start("obeys", port)
    until_sync(lambda: "started" in events(log))
    second, told = start("hangs", port)
    assert second.wait(20) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in told()[-1]["fault"]
    assert first.poll() is None
