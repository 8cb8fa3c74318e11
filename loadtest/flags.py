"""Flags that commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[
    Path | None,
    typer.Option(help="Folder for record.json and report.html; default: loadtest-out/COMMAND.", show_default=False),
]
Api = Annotated[
    str | None,
    typer.Option(help="URL of the API of a cluster that you run. Give --database too.", show_default=False),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="RINGCRON_DATABASE_URL",
        help="PostgreSQL of that cluster.",
        show_default=False,
        show_envvar=True,
    ),
]
ApiKey = Annotated[str | None, typer.Option(envvar="RINGCRON_API_KEY", help="Key for that API, where it asks for one.")]
Workers = Annotated[int, typer.Option(min=1, max=500, help="How many worker processes.")]
Jobs = Annotated[int, typer.Option(min=1, max=10_000_000, help="How many jobs.")]
JobSeconds = Annotated[float, typer.Option(min=0, max=3600, help="How long each job takes; 0: no time at all.")]
Concurrency = Annotated[int, typer.Option(min=1, max=10_000, help="How many jobs a worker runs at once.")]
Ballast = Annotated[int, typer.Option(min=0, max=50_000_000, help="Far-future jobs to put beside, over a year.")]
Repeat = Annotated[int, typer.Option(min=1, max=100, help="How many times to measure.")]
