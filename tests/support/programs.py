"""Whole programs, started as a user starts them, to be watched, paused and killed."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from ringcron.local.processes import end, free_port, launch
from ringcron.settings import ApiSettings, CommonSettings, CoordinatorSettings, WorkerSettings, variables_of
from tests.support.waiting import until_sync

_SETTINGS: dict[str, type[CommonSettings]] = {
    "api": ApiSettings,
    "coordinator": CoordinatorSettings,
    "worker": WorkerSettings,
}


class Program:
    """A running program. Its log is JSON, one event a line."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def pause(self) -> None:
        """SIGSTOP: as a machine that hangs."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        """SIGTERM: asked to drain. Does not wait."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = 30.0) -> int:
        """The exit code, or AssertionError with the log where it does not end in time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {seconds:g} s:\n{self.text()}") from None

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def events(self, event: str | None = None) -> list[dict[str, Any]]:
        """What it has logged: all, or the lines of one event. Lines that are no JSON are left out."""
        found = []
        for line in self.text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if event is None or entry.get("event") == event:
                found.append(entry)
        return found


class Api(Program):
    """A running API, with the little HTTP that tests need."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, url: str) -> None:
        super().__init__(name, process, log)
        self.url = url

    def call(
        self, method: str, path: str, body: object = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status and the JSON of the answer (None where it has no body). OSError where nobody answers."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read()
        return status, json.loads(text) if text else None

    def answers(self) -> bool:
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False


class Programs:
    """Starts programs for one test and kills those that are left at its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Program] = []

    def worker(self, database_url: str, zookeeper: str = "none", *, name: str = "w-1", **settings: object) -> Program:
        """`settings` are fields of WorkerSettings; `environment` may add variables of any name."""
        return self._start("worker", name, database_url=database_url, zookeeper=zookeeper, **settings)

    def coordinator(self, database_url: str, zookeeper: str, *, name: str = "c-1", **settings: object) -> Program:
        """`settings` are fields of CoordinatorSettings."""
        return self._start("coordinator", name, database_url=database_url, zookeeper=zookeeper, **settings)

    def api(self, database_url: str, **settings: object) -> Api:
        """An API that answers. `settings` are fields of ApiSettings."""
        port = free_port()
        program = self._start("api", "api", database_url=database_url, port=port, **settings)
        api = Api("api", program.process, program.log, f"http://127.0.0.1:{port}")
        until_sync(lambda: api.answers() or not api.running, seconds=30, what="the API answers")
        assert api.running, f"the API ended:\n{api.text()}"
        return api

    def starting_api(self, database_url: str, **settings: object) -> Program:
        """An API that need not come to answer."""
        return self._start("api", "starting-api", database_url=database_url, **settings)

    def _start(self, kind: str, name: str, *, environment: dict[str, str] | None = None, **settings: object) -> Program:
        fields = {field.name: field for field in dataclasses.fields(_SETTINGS[kind])}
        settings |= {"log_format": "json"} | ({"name": name} if "name" in fields else {})
        told = {variables_of(fields[key])[0]: _text(value) for key, value in settings.items()}
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("RINGCRON_")}
        log = self._folder / f"{name}.log"
        process = launch(
            [sys.executable, "-P", "-m", "ringcron", kind],
            environment={**inherited, **told, **(environment or {})},
            log=log,
        )
        program = Program(name, process, log)
        self._started.append(program)
        return program

    def close(self) -> None:
        for program in self._started:
            end(program.process, signal.SIGKILL, seconds=10)


def _text(value: object) -> str:
    if value is None:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
