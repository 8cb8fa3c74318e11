"""Processor time, from the kernel's own books: what processes have taken, and how busy the machine is."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 1, 11, 12, 13, 14  # fields after the command's name


_IDLE, _WAITING = 3, 4  # fields of the first line of /proc/stat


class Quiet:
    """Waits for a quiet moment: on a machine that is shared, a run beside somebody else's load says little."""

    def __init__(self, *, most: float, patience_seconds: float, look_seconds: float = 2.0) -> None:
        """Quiet: all processors together are busy for at most `most` (0 to 1) over `look_seconds`. After
        `patience_seconds` it gives up."""
        self._most = most
        self._patience_seconds = patience_seconds
        self._look_seconds = look_seconds

    def wait(self) -> float | None:
        """How busy the machine was when the waiting ended (0 to 1). None where there is no /proc."""
        waited = 0.0
        while True:
            before = _busy_and_all()
            if before is None:
                return None
            time.sleep(self._look_seconds)
            after = _busy_and_all()
            assert after is not None
            share = (after[0] - before[0]) / max(1, after[1] - before[1])
            waited += self._look_seconds
            if share <= self._most or waited >= self._patience_seconds:
                return round(share, 3)


def _busy_and_all() -> tuple[int, int] | None:
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return None
    fields = [int(word) for word in line.split()[1:9]]
    return sum(fields) - fields[_IDLE] - fields[_WAITING], sum(fields)


def cpu_seconds(roots: Iterable[int]) -> float | None:
    """Of these processes, all that descend from them, and those of them that have ended and been waited for.

    None where there is no /proc.
    """
    fields: dict[int, list[str]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        pid = int(entry.parent.name)
        fields[pid] = after_name
        children[int(after_name[_PARENT])].append(pid)
    if not fields:
        return None
    total, open_ = 0, list(roots)
    while open_:
        pid = open_.pop()
        open_ += children[pid]
        if pid in fields:
            total += sum(int(fields[pid][index]) for index in (_USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM))
    return total / _TICKS
