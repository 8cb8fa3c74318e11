"""`python -m loadtest compare`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from loadtest import flags
from loadtest.compare.arena import Arena
from loadtest.compare.bare import Limit
from loadtest.compare.contestants import Contestant
from loadtest.compare.cpu import Quiet
from loadtest.compare.installing import default_folder
from loadtest.compare.measuring import measure
from loadtest.compare.ours import Ringcron
from loadtest.compare.peers import all_peers
from loadtest.compare.session import Session
from loadtest.compare.telling import tell
from loadtest.compare.works import WORKS, Work, work_named
from loadtest.database import Database
from loadtest.machine import describe_machine, describe_versions
from loadtest.progress import Progress
from loadtest.record import finish
from ringcron.local.postgres import remove

DEFAULT_WORKS: Final = ["spike", "drain", "drain1"]
WIDTH: Final = 140
QUIET: Final = 0.15
"""How busy the processors may be, of 1, for a moment to be quiet."""
_NAMES: Final = ", ".join(work.name for work in WORKS)


def compare(
    work: Annotated[list[str] | None, typer.Option(help=f"Rows, by commas or repeated: {_NAMES}; or all.")] = None,
    runs: Annotated[int, typer.Option(min=1, max=100, help="Rounds; each contestant runs once in each.")] = 3,
    peers: Annotated[
        str, typer.Option(help="Peers, by commas: pgqueuer, procrastinate, graphile-worker, pg-boss; all; or none.")
    ] = "all",
    ballast: Annotated[
        int | None,
        typer.Option(
            min=0, max=50_000_000, help="Far-future jobs beside; default: each row's own.", show_default=False
        ),
    ] = None,
    peers_folder: Annotated[
        Path | None,
        typer.Option(help="Where peers are installed; default: the folder `peers` of the cache.", show_default=False),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(min=0, max=3600, help="Seconds to wait before each run for a machine that is not busy otherwise."),
    ] = 0.0,
    keep: Annotated[
        Path | None,
        typer.Option(help="Keep the server and its templates here, for the next comparison.", show_default=False),
    ] = None,
    out: flags.Out = None,
) -> None:
    """The command."""
    works = _works(work or DEFAULT_WORKS)
    chosen = _peers(peers, (peers_folder or default_folder()).resolve())
    out = out or Path("loadtest-out") / "compare"
    arguments = {
        "work": ",".join(row.name for row in works),
        "runs": runs,
        "peers": peers,
        "ballast": ballast,
        "patience": patience or None,
    }
    progress = Progress()
    with ExitStack() as stack:
        folder = keep.resolve() if keep else stack.enter_context(_temporary_folder())
        folder.mkdir(parents=True, exist_ok=True)
        machine = describe_machine(folder)
        progress.say("starting PostgreSQL")
        arena = stack.enter_context(Arena(folder, progress))
        contestants: list[Contestant] = [Ringcron(arena.zookeeper), Limit(), *chosen]
        session = Session(
            contestants,
            progress,
            prepare=arena.prepare,
            run_once=lambda row, contestant, amount: measure(row, contestant, arena, ballast=amount),
            quiet=Quiet(most=QUIET, patience_seconds=patience),
        )
        session.install()
        for row in works:
            session.run(row, rounds=runs, ballast=ballast)
        with Database(arena.url) as database:
            versions = {**describe_versions(database), **session.results.versions}
    outcome = tell(works, contestants, session.results, command="compare", arguments=arguments)
    raise typer.Exit(finish(outcome, out, machine=machine, versions=versions, console=_console()))


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ringcron-compare-"))
    folder.chmod(0o755)  # PostgreSQL gives up root before it enters its data folder
    try:
        yield folder
    finally:
        remove(folder / "postgres")
        shutil.rmtree(folder, ignore_errors=True)


def _console() -> Console:
    """Wide enough for the tables where nobody watches."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _works(words: Sequence[str]) -> list[Work]:
    names = [name for word in words for name in word.split(",") if name]
    if names == ["all"]:
        return list(WORKS)
    try:
        return [work_named(name) for name in names]
    except KeyError as error:
        raise typer.BadParameter(f"no row is called {error}; there are {_NAMES}") from None


def _peers(words: str, folder: Path) -> list[Contestant]:
    known = all_peers(folder)
    if words == "none":
        return []
    if words == "all":
        return known
    wanted = words.split(",")
    if unknown := set(wanted) - {peer.name for peer in known}:
        raise typer.BadParameter(f"no peer is called {', '.join(sorted(unknown))}")
    return [peer for peer in known if peer.name in wanted]
