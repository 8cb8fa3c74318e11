"""What a run has left behind in its handler process when its handler has returned.

A thread or a child that still works would be a part of the run that outlives it, and that may still work when the job
runs elsewhere. So the process is then ended with all that is in its session; daemons that began a session of their own
go on, as is their purpose.
"""

from __future__ import annotations

import os
import threading


def left_behind(threads_before: set[threading.Thread]) -> bool:
    """Whether a thread that was not there before is alive, or any child (orphans are adopted). Reaps the dead."""
    if any(thread not in threads_before for thread in threading.enumerate()):
        return True
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
    except ChildProcessError:
        return False
