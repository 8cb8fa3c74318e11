"""Start ringcron's programs as a user does, to be watched, paused and killed.

Invariant: settings go by the environment; of the user's own RINGCRON_* variables none reaches the programs, so that a
run measures what it says. Each program ends when the harness does, however that ends.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ringcron.local.processes import end, launch, tail
from ringcron.settings import ApiSettings, CommonSettings, CoordinatorSettings, WorkerSettings, variables_of

CHECKOUT: Final = Path(__file__).parents[2]
SEARCH_PATH: Final = os.pathsep.join(
    str(CHECKOUT / root) for root in ("", "core", "sql", "coordinator", "shard_worker", "api")
)
"""Of this tree, so that a copy of it runs its own programs."""

_SETTINGS: Final[Mapping[str, type[CommonSettings]]] = {
    "api": ApiSettings,
    "coordinator": CoordinatorSettings,
    "worker": WorkerSettings,
}


class Program:
    """A running program. `process` is its present one."""

    def __init__(self, name: str, log: Path, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self.name = name
        self.log = log
        self._start = start
        self.process = start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None

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

    def drain(self) -> None:
        """SIGTERM: asked to end in good order. Does not wait."""
        self.process.send_signal(signal.SIGTERM)

    def end(self, seconds: float = 15.0) -> None:
        """Ask it to drain, wait, and kill it where it takes longer than `seconds`."""
        end(self.process, signal.SIGTERM, seconds=seconds)

    def start_again(self) -> None:
        """Start it again as it was started, from the main thread; the old process has ended."""
        self.process = self._start()

    def log_end(self) -> str:
        """The last lines of its log."""
        return tail(self.log)


class Launcher:
    """Starts programs that have the same database and ZooKeeper; their logs lie in one folder."""

    def __init__(self, logs: Path, *, database_url: str, zookeeper: str) -> None:
        """`zookeeper` may be "none"."""
        self._logs = logs
        self._common = {"database_url": database_url, "zookeeper": zookeeper}
        logs.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        program: str,
        name: str,
        within: Sequence[str] = (),
        /,
        *,
        environment: Mapping[str, str] | None = None,
        **settings: object,
    ) -> Program:
        """Start `worker`, `coordinator` or `api`. `settings` are fields of its settings class; `within` are words that
        stand before the program and replace themselves by it. Call it from the main thread: the program ends with the
        thread that started it."""
        fields = {field.name: field for field in dataclasses.fields(_SETTINGS[program])}
        told = {**self._common, "log_format": "json", "log_level": "info", **settings}
        if "name" in fields:
            told["name"] = name
        variables = {variables_of(fields[key])[0]: _text(value) for key, value in told.items()}
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RINGCRON_", "LOADTEST_"))}
        log = self._logs / f"{name}.log"
        whole = {**inherited, "PYTHONPATH": SEARCH_PATH, **variables, **(environment or {})}
        command = [*within, sys.executable, "-P", "-m", "ringcron", program]
        return Program(name, log, lambda: launch(command, environment=whole, log=log))


def _text(value: object) -> str:
    if value is None:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
