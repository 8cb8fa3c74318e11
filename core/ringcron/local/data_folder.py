"""The folder of one `ringcron up`: the servers' data, the logs, and up.json.

Invariant: at most one `ringcron up` works in a folder; the kernel's lock on `<folder>/lock` says who, and is gone with
the process however that ends. up.json is there only while everything runs; it holds the database's password, so only
its owner can read it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ringcron.local.errors import LocalServerError
from ringcron.local.postgres import remove


class DataFolder:
    """Held as a context: `with DataFolder(path) as folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: int | None = None

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def zookeeper(self) -> Path:
        return self.path / "zookeeper"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def up_file(self) -> Path:
        return self.path / "up.json"

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 20).decode().strip()
            os.close(lock)
            raise LocalServerError(
                f"another ringcron up (process {holder}) already runs in {self.path}: "
                f"its addresses are in {self.up_file}; stop it first, or give this one a --data-dir of its own"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        self._lock = lock
        self.forget()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.forget()
        if self._lock is not None:
            os.close(self._lock)

    def clear(self) -> None:
        """Delete the servers' data and the logs; nothing else that may lie in the folder."""
        for server in (self.postgres, self.zookeeper):
            remove(server)
        shutil.rmtree(self.logs, ignore_errors=True)

    def turn_logs(self) -> None:
        """Keep the logs of the last time as <name>.log.1, and begin new ones."""
        self.logs.mkdir(exist_ok=True)
        for log in self.logs.glob("*.log"):
            log.replace(log.with_name(log.name + ".1"))

    def announce(self, document: dict[str, Any]) -> None:
        """Write up.json, whole or not at all."""
        scratch = self.path / ".up.json"
        scratch.unlink(missing_ok=True)
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
        scratch.replace(self.up_file)

    def forget(self) -> None:
        """Take up.json away."""
        self.up_file.unlink(missing_ok=True)
