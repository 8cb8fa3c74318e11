"""Commands that call the API: how their answers and errors are told.

Invariants: results go to standard output and nothing else does, so that `--json` can be piped; errors go to standard
error and say what to do next. Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the API cannot be reached. The
API key is shown nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_type_hints

import typer

from ringcron import service
from ringcron.cli.api_address import ApiOption, KeyOption
from ringcron.cli.api_connection import connect
from ringcron.cli.api_errors import error_json, error_text
from ringcron.cli.faults import told
from ringcron.client import ApiError, Client, Unreachable

UNREACHABLE: Final = 3

JsonOption = Annotated[bool, typer.Option("--json", help="Tell the result, or the error, as JSON.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """What a command works with: the API, and whether a person or a program reads its output."""

    client: Client
    as_json: bool

    def tell(self, document: Any, people: Callable[[], None]) -> None:
        """Print a result: `document` as JSON for a program; a person gets what `people` prints."""
        if self.as_json:
            typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        else:
            people()


def api_command(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A command with the parameters of `function` behind its first, a Call, and --api, --api-key and --json."""

    def command(*, api: str | None, api_key: str | None, as_json: bool, **arguments: Any) -> None:
        async def run(client: Client) -> None:
            async with client:
                await function(Call(client=client, as_json=as_json), **arguments)

        with told(), _api_errors_told(as_json):
            asyncio.run(run(connect(api, api_key, os.environ)))

    hints = get_type_hints(function, include_extras=True)
    shared = {"api": (ApiOption, None), "api_key": (KeyOption, None), "as_json": (JsonOption, False)}
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]
    ] + [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in shared.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = function.__doc__
    return command


@contextlib.contextmanager
def _api_errors_told(as_json: bool) -> Iterator[None]:
    try:
        yield
    except (ApiError, Unreachable) as error:
        typer.echo(error_json(error) if as_json else f"ringcron: {error_text(error)}", err=True)
        raise typer.Exit(UNREACHABLE if isinstance(error, Unreachable) else service.FAULT) from None
