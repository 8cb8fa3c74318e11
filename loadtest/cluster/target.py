"""What a command needs of the cluster that it puts under load, whoever runs it.

Invariant: what only a cluster of our own can show (start logs, processes to stop, CPU and memory) is None or empty in a
given one, and `blind_spots` says so in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from loadtest.cluster.programs import Program
from loadtest.database import Database
from loadtest.starts import StartLogs


class Cluster(Protocol):
    """A cluster under load."""

    @property
    def own(self) -> bool: ...
    @property
    def handler(self) -> str:
        """The handler that a run's jobs name; its payload is `{}` or `{"seconds": …}`."""
        ...

    @property
    def database(self) -> Database: ...
    @property
    def api_url(self) -> str: ...
    @property
    def api_key(self) -> str | None: ...
    @property
    def workers(self) -> Sequence[Program]: ...
    @property
    def starts(self) -> StartLogs | None: ...
    @property
    def postgres_pid(self) -> int | None: ...
    @property
    def blind_spots(self) -> Sequence[str]:
        """Sentences: what cannot be measured here."""
        ...
