"""What takes part: ringcron, the limit, or a peer. Each is seen through these two interfaces only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from loadtest.peers.protocol import DATABASE_VARIABLE, JOB_SECONDS_VARIABLE, STARTS_VARIABLE, Order
from ringcron.errors import RingcronError

CHECKOUT: Final = Path(__file__).parents[2]
READY_SECONDS: Final = 180.0

Kind = Literal["ringcron", "limit", "python", "node"]


class Absent(RingcronError):
    """This contestant cannot take part here."""


class Broken(RingcronError):
    """A run went wrong: a program ended, or did not answer in time."""


class TooLate(Broken):
    """The jobs were not in place before they were due: the machine is too busy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Where one run takes place: a database and a folder that nothing else uses."""

    database_url: str
    folder: Path
    job_seconds: float = 0.0

    @property
    def starts(self) -> Path:
        """The folder that handlers write their starts into."""
        return self.folder / "starts"

    def environment(self) -> dict[str, str]:
        """What programs are told: ours without the settings of ringcron that the user has, and the run's own."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RINGCRON_", "COMPARE_"))}
        return {**inherited, "PYTHONPATH": str(CHECKOUT), **self.variables()}

    def variables(self) -> dict[str, str]:
        """The run's own."""
        return {
            DATABASE_VARIABLE: self.database_url,
            STARTS_VARIABLE: str(self.starts),
            JOB_SECONDS_VARIABLE: f"{self.job_seconds:g}",
        }


class Crew(Protocol):
    """The running programs of one contestant on one site, workers idle and ready."""

    @property
    def workers(self) -> Sequence[subprocess.Popen[bytes]]: ...

    def enqueue(self, order: Order) -> float:
        """Create these jobs by the bulk call; how many seconds that took. Raises Broken."""
        ...

    def check(self) -> None:
        """Raises Broken with the end of its log where a program has ended."""
        ...

    def close(self) -> None:
        """Kill what runs."""
        ...


class Contestant(Protocol):
    """One that takes part. `queries` is the folder of its statements `ballast` and `left`."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def queries(self) -> str: ...

    @property
    def edition(self) -> str:
        """Changes when a template that was made earlier is no longer what `build` would make."""
        ...

    def install(self) -> Mapping[str, str]:
        """Make it available; the versions of what it is made of. Raises Absent."""
        ...

    def build(self, database_url: str) -> None:
        """Make its schema in an empty database. Raises Broken."""
        ...

    def start(self, site: Site, *, workers: int, tasks: bool) -> Crew:
        """Start so many worker processes and wait until they are ready. Raises Broken.

        `tasks`: the row compares schedulers that make a task for each job (it decides the style of the limit)."""
        ...
