"""`ringcron up`: everything on this machine, from nothing to serving."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ringcron.cli.api_address import key_of
from ringcron.cli.faults import told
from ringcron.cli.up_file import UP_FILE

Handlers = Annotated[
    list[str] | None,
    typer.Option(
        "--handlers", metavar="MODULE", help="Module or file with handlers, from here or installed. Repeatable."
    ),
]


def up(
    workers: Annotated[int, typer.Option(min=1, max=500, help="How many workers.")] = 4,
    concurrency: Annotated[int, typer.Option(min=1, max=10_000, help="How many jobs each runs at once.")] = 10,
    coordinators: Annotated[int, typer.Option(min=1, max=5, help="How many coordinators; one leads.")] = 2,
    handlers: Handlers = None,
    default_handler: Annotated[str, typer.Option(help="What runs jobs that name no handler.")] = "log",
    allow_commands: Annotated[
        bool, typer.Option("--allow-commands", help="Let workers run jobs of the handler command.")
    ] = False,
    api_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API; 0: any free one.")] = 8080,
    data_dir: Annotated[Path, typer.Option(help="Where data and logs are kept.")] = UP_FILE.parent,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin with empty servers: deletes their data in the data folder.")
    ] = False,
    sample: Annotated[bool, typer.Option("--sample/--no-sample", help="Put a few small jobs in.")] = True,
    zookeeper: Annotated[
        str | None,
        typer.Option(envvar="RINGCRON_ZOOKEEPER", metavar="HOSTS|none", help="Use these servers, or none at all."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(envvar="RINGCRON_DATABASE_URL", metavar="URL", help="Use this PostgreSQL, 15 or newer."),
    ] = None,
) -> None:
    """Start everything and stay until Ctrl-C."""
    from ringcron.local.up import UpOptions, run  # not above: each program that `ringcron` starts would carry it

    with told():
        code = run(
            UpOptions(
                workers=workers,
                concurrency=concurrency,
                coordinators=coordinators,
                handlers=tuple(handlers or ()),
                default_handler=default_handler,
                allow_commands=allow_commands,
                api_port=api_port,
                data_folder=data_dir,
                fresh=fresh,
                sample=sample,
                zookeeper=zookeeper,
                database=database,
                api_key=key_of(os.environ),
                found=data_dir.absolute() == UP_FILE.parent.absolute(),
            )
        )
    raise typer.Exit(code)
