"""Two wishes to the Linux kernel about a process and its family; elsewhere they are not granted."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def granted_here() -> bool:
    """Whether this platform knows these wishes at all."""
    return sys.platform == "linux"


def die_with(parent: int) -> bool:
    """SIGKILL for this process when its parent dies (more exactly: the thread of the parent that started it).

    Exits at once where the parent is gone already: the kernel sends nothing for a death that it has seen before.
    """
    granted = _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    return granted


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent has ended, so that a run's leftovers can be seen."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    if not granted_here():
        return False
    return bool(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0)
