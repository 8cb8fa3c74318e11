"""Ends the process when its event loop hangs.

Invariant: a coordinator whose loop has not come round for three session timeouts is gone, so that another one leads: a
hung one may keep its session alive through kazoo's threads. The watching thread counts its own wake-ups, not time: a
process that was stopped as a whole, or a machine that slept, is not taken for one that hangs.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from typing import Final

SESSIONS: Final = 3
LOOKS_PER_SESSION: Final = 4
EXIT_CODE: Final = 70


class Watchdog:
    """Watches from `start` to `stop` that `beat` is called."""

    def __init__(self, session_seconds: float) -> None:
        self._pause_seconds = session_seconds / LOOKS_PER_SESSION
        self._looks_left = SESSIONS * LOOKS_PER_SESSION
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def beat(self) -> None:
        """Say that the loop has come round."""
        self._looks_left = SESSIONS * LOOKS_PER_SESSION

    def _watch(self) -> None:
        while not self._stopped.wait(self._pause_seconds):
            self._looks_left -= 1
            if self._looks_left < 0:
                # Not through the log: whatever hangs may hold its lock.
                sys.stderr.write(f"the coordinator has hung for {SESSIONS} session timeouts, ending it\n")
                faulthandler.dump_traceback(all_threads=True)
                sys.stderr.flush()
                os._exit(EXIT_CODE)
