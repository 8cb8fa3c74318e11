"""The programs of ringcron as children of `ringcron up`.

Settings go by the environment, never by arguments: those everybody on the machine can read. What the user has set by
RINGCRON_* variables reaches the programs, but for what `ringcron up` decides itself.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from ringcron.local.data_folder import DataFolder
from ringcron.local.processes import launch
from ringcron.local.rest import ApiUnavailable, Rest
from ringcron.local.supervisor import Child
from ringcron.settings import ApiSettings, CommonSettings, CoordinatorSettings, WorkerSettings, variables_of

OWN_MACHINE: Final = "127.0.0.0/8"
"""The handler `http` of a worker of ours may reach this machine: that is where a newcomer's first target listens."""
KILL_AFTER_DRAIN_SECONDS: Final = 10.0


class Programs:
    """Makes children that all have the same database, ZooKeeper and handlers."""

    def __init__(
        self,
        folder: DataFolder,
        *,
        database_url: str,
        zookeeper: str,
        concurrency: int,
        handlers: tuple[str, ...],
        default_handler: str,
        allow_commands: bool,
    ) -> None:
        self._folder = folder
        self._common = {"database_url": database_url, "zookeeper": zookeeper}
        self._worker = {
            "concurrency": str(concurrency),
            "handlers": ",".join(handlers),
            "default_handler": default_handler,
            "allow_commands": "yes" if allow_commands else "no",
            "http_allow": ",".join(filter(None, (OWN_MACHINE, os.environ.get("RINGCRON_HTTP_ALLOW")))),
        }

    def coordinator(self, name: str, stage: int) -> Child:
        return self._child("coordinator", name, stage, CoordinatorSettings, {"name": name, "metrics_port": "0"})

    def worker(self, name: str, stage: int) -> Child:
        child = self._child("worker", name, stage, WorkerSettings, {"name": name, "metrics_port": "0", **self._worker})
        drain_seconds = WorkerSettings.load(os.environ, **self._common).drain_seconds
        return dataclasses.replace(child, stop_seconds=drain_seconds + KILL_AFTER_DRAIN_SECONDS)

    def api(self, name: str, stage: int, port: int, rest: Rest) -> Child:
        child = self._child("api", name, stage, ApiSettings, {"port": str(port), "host": "127.0.0.1"})
        return dataclasses.replace(child, is_ready=lambda: _answers(rest))

    def _child(
        self, program: str, name: str, stage: int, settings: type[CommonSettings], told: Mapping[str, str]
    ) -> Child:
        log = self._folder.log_of(name)
        environment = {
            "RINGCRON_LOG_FORMAT": "console",
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            **_variables(settings, {**self._common, **told}),
        }
        command = [sys.executable, "-P", "-m", "ringcron", program]
        return Child(
            role=program,
            name=name,
            stage=stage,
            spawn=lambda: launch(command, environment=environment, log=log),
            log=log,
        )


def _answers(rest: Rest) -> bool:
    try:
        return rest.call("GET", "/readyz")[0] == 200
    except ApiUnavailable:
        return False


def _variables(settings: type[CommonSettings], told: Mapping[str, str]) -> dict[str, str]:
    fields: dict[str, dataclasses.Field[Any]] = {field.name: field for field in dataclasses.fields(settings)}
    return {variables_of(fields[name])[0]: value for name, value in told.items()}
