"""How much processor time processes and their children have taken, from the kernel's own books."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 1, 11, 12, 13, 14  # fields after the command's name


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
