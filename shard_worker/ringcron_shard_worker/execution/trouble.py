"""While no handler process can be started: how long to claim nothing for, and when the jobs have to be told.

A machine out of processes, files or memory is no fault of a job: its run is handed back, for another worker or a better
moment. Invariant: that ends. Once not one process has come up for GIVE_UP_SECONDS, each run that needs one fails with
the reason, so that a worker on which none can ever start (its modules do not import there) is seen on its jobs.
"""

from __future__ import annotations

from typing import Final

GIVE_UP_SECONDS: Final = 300.0
FORGET_SECONDS: Final = 120.0
"""A failure that comes so long after the last one is the first of others. More than one start may take."""
PAUSE_SECONDS: Final = (1.0, 16.0)
"""How long nothing is claimed: from, doubling, to."""


class Trouble:
    """The failed starts of one worker. All instants are elapsed seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._met_at = 0.0
        self._pause = PAUSE_SECONDS[0]
        self._until = 0.0

    def met(self, now: float) -> float | None:
        """A process did not come up: the seconds to claim nothing for; None where it has gone on for too long.

        Failures that come together are one: they do not add to the pause.
        """
        if now - self._met_at > FORGET_SECONDS:
            self.over()
        self._met_at = now
        if self._since is None:
            self._since = now
        if now - self._since >= GIVE_UP_SECONDS:
            return None
        if now >= self._until:
            self._until = now + self._pause
            self._pause = min(PAUSE_SECONDS[1], self._pause * 2)
        return self._until - now

    def over(self) -> None:
        """A process has come up."""
        self._since = None
        self._pause = PAUSE_SECONDS[0]
