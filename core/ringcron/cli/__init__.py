"""The command `ringcron`.

It starts the three programs by the names of their entry points and imports none of them, so that each can be installed,
replaced and tested alone. Exit codes: 0 done, 1 a fault, 2 wrong usage or wrong settings; of `ringcron job` also 3, the
API cannot be reached.
"""

from __future__ import annotations

import typer

import ringcron.cli.plain_logs  # noqa: F401  before whatever imports structlog
from ringcron import __version__
from ringcron.cli.crontab import import_crontab
from ringcron.cli.job_group import JobGroup
from ringcron.cli.keys import key
from ringcron.cli.migrate import migrate_database
from ringcron.cli.programs import program_command, settings_command
from ringcron.cli.up import up
from ringcron.settings import ApiSettings, CoordinatorSettings, DatabaseSettings, WorkerSettings

__all__ = ["app", "main"]

app = typer.Typer(
    name="ringcron",
    help="Run jobs on time on a pool of machines.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they print local variables, and so passwords
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ringcron {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Say the version and end."),
) -> None:
    pass


app.command("api", help="Serve the HTTP API. Needs PostgreSQL.")(program_command("api", ApiSettings))
app.command("worker", help="Claim due jobs and run them. Needs PostgreSQL; ZooKeeper, or none.")(
    program_command("worker", WorkerSettings)
)
app.command("coordinator", help="Stand for leader: share the slots out among workers, look after partitions.")(
    program_command("coordinator", CoordinatorSettings)
)
app.command("migrate", help="Bring the database to the schema of this version.")(
    settings_command(DatabaseSettings, migrate_database)
)
app.command("up", help="Start everything on this machine: real servers, coordinators, workers, the API.")(up)
app.add_typer(
    typer.Typer(cls=JobGroup),
    name="job",
    help="Schedule jobs, look at them, change them: by the API.",
    no_args_is_help=True,
)
app.add_typer(key, name="key", help="Add, list and revoke API keys, in the database.")
app.command("import-crontab", help="Turn crontab files into jobs, through the API; safe to repeat.")(import_crontab)


def main() -> None:
    """The console script."""
    app()
