"""From a command's flags to its exit code: open the cluster, measure, write down, show.

Invariant: the record says which cluster it was and what could not be seen there; an error that ringcron raises on
purpose is told as a sentence, and leaves no process behind.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import typer
from rich.console import Console

from loadtest.cluster.errors import ClusterError
from loadtest.cluster.given import GivenCluster, given_cluster
from loadtest.cluster.own import ClusterPlan, OwnCluster, own_cluster
from loadtest.machine import describe_machine, describe_versions
from loadtest.outcome import Outcome
from loadtest.progress import Progress
from loadtest.record import finish
from ringcron.cli.faults import told

RESULTS: Final = Path("loadtest-out")
PIPE_WIDTH: Final = 140


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """Which cluster, and where the results go. Without `api` and `database`: a cluster of our own."""

    out: Path | None
    api: str | None = None
    database: str | None = None
    api_key: str | None = None

    @property
    def given(self) -> bool:
        return self.api is not None


Body = Callable[[OwnCluster, Outcome, Progress], None]
BodyAnywhere = Callable[[OwnCluster | GivenCluster, Outcome, Progress], None]


def measure(where: Where, plan: ClusterPlan, outcome: Outcome, body: Body) -> NoReturn:
    """Run `body` on a cluster of our own, finish the outcome, and leave with its exit code."""

    def own_only(cluster: OwnCluster | GivenCluster, outcome: Outcome, progress: Progress) -> None:
        assert isinstance(cluster, OwnCluster)  # these commands have no flag for another
        body(cluster, outcome, progress)

    measure_anywhere(where, plan, outcome, own_only)


def measure_anywhere(where: Where, plan: ClusterPlan, outcome: Outcome, body: BodyAnywhere) -> NoReturn:
    """The same for a body that can do with a given cluster."""
    signal.signal(signal.SIGTERM, _leave)
    if where.given:
        outcome.arguments = {**outcome.arguments, "api": where.api}
    progress = Progress()
    folder = where.out or RESULTS / outcome.command
    with told():
        machine = describe_machine(Path.cwd())
        with _opened(where, plan, progress) as cluster:
            versions = describe_versions(cluster.database)
            outcome.notes += cluster.blind_spots
            body(cluster, outcome, progress)
    code = finish(outcome, folder, machine=machine, versions=versions, console=console_for_people())
    raise typer.Exit(code)


def _leave(sign: int, _: object) -> NoReturn:
    """SIGTERM: wind up as for Ctrl-C, so that no folder and no process is left."""
    raise SystemExit(128 + sign)


def console_for_people() -> Console:
    """Standard output, as wide as the terminal; in a pipe wide enough for a line of figures."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def _opened(
    where: Where, plan: ClusterPlan, progress: Progress
) -> AbstractContextManager[OwnCluster] | AbstractContextManager[GivenCluster]:
    if where.api is None:
        return own_cluster(plan, progress)
    if where.database is None:
        raise ClusterError("--api needs --database beside it: run rows and the database's clock are read there")
    return given_cluster(api_url=where.api, database_url=where.database, api_key=where.api_key)
