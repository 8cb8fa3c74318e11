"""The commands of `python -m loadtest`. Exit codes: 0 clean; 1 duplicates, early starts, missed jobs or a fault;
2 wrong usage."""

from __future__ import annotations

import typer

from loadtest.compare.command import compare
from loadtest.drain import drain
from loadtest.spike import spike

app = typer.Typer(
    name="loadtest",
    help="Measure ringcron under load, on a cluster of its own or on yours, and say what went wrong first.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they print local variables, and so passwords
    add_completion=False,
)
app.command(help="Many jobs due in the same second: when does the last one start?")(spike)
app.command(help="A backlog of due jobs: how many are run per second?")(drain)
app.command(help="The same work by ringcron, by other schedulers and by bare SQL: ratios with ranges.")(compare)
