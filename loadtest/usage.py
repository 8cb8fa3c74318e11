"""CPU and memory of processes, from /proc. Linux only; elsewhere there is nothing to read, and None says so.

Memory is PSS: pages that several processes share are counted by their share, so that a sum over a fleet is what the
machine has to have.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Of a process and what it started, in bytes; `processes` says how many that are. `anon` is the part of `pss` that
    no file and no shared memory stands behind: what the process has allocated."""

    processes: int
    pss: int
    rss: int
    anon: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Handles:
    """Threads and open files of a process."""

    threads: int
    files: int


def trees_of(pids: Iterable[int]) -> list[int]:
    """These processes and all that descend from them."""
    children: dict[int, list[int]] = {}
    for folder in _PROC.glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, waiting = [], list(pids)
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children.get(one, [])
    return found


def cpu_seconds(pids: Iterable[int]) -> float | None:
    """CPU that these processes and all their descendants have used, those included that have ended and were reaped."""
    if not _PROC.exists():
        return None
    total = 0
    for pid in trees_of(pids):
        fields = _stat(pid)
        if fields is not None:
            total += sum(int(fields[index]) for index in (11, 12, 13, 14))  # user, system; of reaped children too
    return total / _TICKS


def memory_of(pid: int) -> Memory | None:
    """Memory of a process and its descendants; None where nothing can be read."""
    parts = memory_of_tree(pid)
    if not parts:
        return None
    return Memory(
        processes=len(parts),
        pss=sum(part.pss for _, part in parts),
        rss=sum(part.rss for _, part in parts),
        anon=sum(part.anon for _, part in parts),
    )


def memory_of_tree(pid: int) -> list[tuple[str, Memory]]:
    """Memory of a process and of each of its descendants, each with the name of what it runs."""
    found = []
    for one in trees_of([pid]):
        memory = memory_alone(one)
        try:
            command = (_PROC / str(one) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if memory is not None:
            found.append((_program(command), memory))
    return found


def memory_alone(pid: int) -> Memory | None:
    """Memory of a process without its descendants; None where it has ended or is not ours to read."""
    try:
        text = (_PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in text.splitlines()[1:]}
    anon = values.get("Pss_Anon", values["Pss"])  # kernels before 5.9 do not tell it apart
    return Memory(processes=1, pss=values["Pss"], rss=values["Rss"], anon=anon)


def handles_of(pid: int) -> Handles | None:
    """Threads and open files of a process without its descendants; None as for `memory_alone`."""
    try:
        files = len(os.listdir(_PROC / str(pid) / "fd"))
    except OSError:
        return None
    fields = _stat(pid)
    return None if fields is None else Handles(threads=int(fields[17]), files=files)


def _program(command: list[bytes]) -> str:
    """What stands behind `-m`, or else the script, or else the program."""
    words = [word.decode(errors="replace") for word in command if word]
    if "-m" in words[:-1]:
        return " ".join(words[words.index("-m") + 1 :][:2])
    script = next((word for word in words if word.endswith(".py")), words[0] if words else "?")
    return script.rpartition("/")[2]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on (parent: 1; CPU in ticks: 11 to 14; threads: 17)."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
