"""How a command tells what went wrong: a sentence on standard error and an exit code, never a traceback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import typer

from ringcron import service
from ringcron.errors import ConfigError, RingcronError
from ringcron.redaction import redact


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turn an error that ringcron raises on purpose into a sentence and an exit code."""
    try:
        yield
    except ConfigError as error:  # its faults show no secret, and their examples of URLs are to be seen
        typer.echo(f"ringcron: {error}", err=True)
        raise typer.Exit(service.USAGE) from None
    except RingcronError as error:
        typer.echo(f"ringcron: {redact(str(error))}", err=True)
        raise typer.Exit(service.FAULT) from None
