"""What a run was measured on: figures mean nothing without it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from loadtest.database import Database
from ringcron import __version__
from ringcron.clock import SystemClock

_PACKAGES: Final = ("psycopg", "aiohttp", "kazoo", "orjson")
_SETTINGS: Final = (
    "shared_buffers",
    "max_connections",
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "max_wal_size",
    "wal_level",
    "jit",
)


def describe_machine(disk: Path) -> dict[str, Any]:
    """Processors, memory, disk, load before the run. Files that this kernel does not have are left out."""
    return {
        "processors": os.cpu_count(),
        "processor": _first_value(Path("/proc/cpuinfo"), "model name"),
        "memoryBytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "freeDiskBytes": shutil.disk_usage(disk).free,
        "loadBefore": list(os.getloadavg()),
        "system": platform.platform(),
        "at": SystemClock().wall().isoformat(timespec="seconds"),
    }


def describe_versions(database: Database | None) -> dict[str, Any]:
    """Of everything that takes part, and the database's settings that decide how fast it can be."""
    versions: dict[str, Any] = {
        "ringcron": __version__,
        "commit": _commit(),
        "python": sys.version.split()[0],
        **{name: version(name) for name in _PACKAGES},
    }
    if database is not None:
        versions["postgresql"] = str(database.value("read_server_version")).split(" on ")[0]
        versions["postgresqlSettings"] = dict(database.run("read_settings", names=list(_SETTINGS)))
    return versions


def _first_value(path: Path, name: str) -> str | None:
    try:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    except OSError:
        pass  # not Linux
    return None


def _commit() -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout.strip() or None
