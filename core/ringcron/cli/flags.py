"""Kinds of flags that commands about jobs share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ringcron.cli.completion import job_ids
from ringcron.cli.readings import duration, instant, job_id, payload
from ringcron.client import JobState


def text_flag(help_text: str, *names: str, metavar: str = "TEXT") -> Any:
    """A flag whose text is taken as it stands."""
    return typer.Option(*names, metavar=metavar, help=help_text)


def number_flag(help_text: str, *names: str, least: int | None = None) -> Any:
    return typer.Option(*names, metavar="N", help=help_text, min=least)


def duration_flag(help_text: str, *names: str) -> Any:
    return typer.Option(*names, parser=duration, metavar="DURATION", help=help_text)


def instant_flag(help_text: str, *names: str) -> Any:
    return typer.Option(*names, parser=instant, metavar="INSTANT", help=help_text)


def payload_flag(help_text: str, *names: str) -> Any:
    return typer.Option(*names, parser=payload, metavar="JSON|@FILE", help=help_text)


def job_argument(state: JobState | None = None) -> Any:
    """The id of a job; a shell completes those of one state, where it is given."""
    return typer.Argument(parser=job_id, metavar="JOB", help="The id of a job.", autocompletion=job_ids(state))


AnyJob = Annotated[str, job_argument()]
Limit = Annotated[int, number_flag("How many to show.", "--limit", least=1)]
All = Annotated[bool, typer.Option("--all", help="Show all, however many.")]
