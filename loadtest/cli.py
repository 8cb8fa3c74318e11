"""The commands of `python -m loadtest`. Exit codes: 0 clean; 1 duplicates, early starts, missed jobs or a fault;
2 wrong usage; 3 (`chaos`) a fault was not felt, so nothing is known."""

from __future__ import annotations

import typer

from loadtest.autoscale.command import autoscale
from loadtest.chaos.command import chaos
from loadtest.compare.command import compare
from loadtest.drain import drain
from loadtest.enqueue import enqueue
from loadtest.idle import idle
from loadtest.polling import polling
from loadtest.precision import precision
from loadtest.recover import recover
from loadtest.recurring import recurring
from loadtest.scale import scale
from loadtest.soak.command import soak
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
app.command(help="How many jobs a second can be created, in batches and one by one, with and without the bell?")(
    enqueue
)
app.command(help="What a fleet costs that has nothing to do: statements, CPU, memory.")(idle)
app.command(help="How long after its instant does a lone job start, and one that is created due at once?")(precision)
app.command(help="One of two workers is killed: how long until its jobs run again?")(recover)
app.command(help="Many jobs that recur every minute: does every tick start on time?")(recurring)
app.command(help="Claims a second with disjoint slices and without.")(polling)
app.command(help="The same work by ringcron, by other schedulers and by bare SQL: ratios with ranges.")(compare)
app.command(help="What grows with the number of scheduled jobs, and what with the number of workers?")(scale)
app.command(help="A simulated day: lateness and worker-hours under each way to size the pool.")(autoscale)
app.command(help="Faults on purpose: is anything lost, run twice at once, or silent?")(chaos)
app.command(help="Hours at a steady rate, with kills: does memory, do connections, do dead rows grow?")(soak)
