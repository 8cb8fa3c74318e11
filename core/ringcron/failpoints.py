"""Places where a program ends by SIGKILL when it is told to: for chaos runs, and for nothing else.

    RINGCRON_FAILPOINTS=leader.planned,leader.published      ends at whichever it reaches first

Invariant: without that variable `reach` does nothing. With it a program starts only on servers of this machine, so that
it cannot come along into production (`refusal`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

VARIABLE: Final = "RINGCRON_FAILPOINTS"
POINTS: Final = ("leader.looked", "leader.planned", "leader.published")
"""In the order in which a leader comes by: it has read everything, it has decided and not written, it has written."""
_HERE: Final = frozenset({"127.0.0.1", "::1", "localhost"})

_armed: Final = frozenset(filter(None, os.environ.get(VARIABLE, "").split(",")))


def reach(point: str) -> None:
    """The program has come to this point: it ends here if it was told to."""
    if point in _armed:
        os.kill(os.getpid(), signal.SIGKILL)


def refusal(environment: Mapping[str, str], database_url: str) -> str | None:
    """Why a program with these settings must not start; None where it may."""
    if not environment.get(VARIABLE):
        return None
    if urlsplit(database_url).hostname in _HERE:
        return None
    return f"{VARIABLE} is set, and the database is not on this machine: it is for chaos runs only"
