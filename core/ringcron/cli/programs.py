"""Commands with a flag for each setting of a settings class, made from the class itself."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Final, TypeVar, get_type_hints

import typer

from ringcron.cli.faults import told
from ringcron.errors import ConfigError
from ringcron.settings import DatabaseSettings, flag_of, variables_of

GROUP: Final = "ringcron.programs"


S = TypeVar("S", bound=DatabaseSettings)


def program_command(program: str, settings_class: type[DatabaseSettings]) -> Callable[..., None]:
    """A command that reads a program's settings and starts it."""
    return settings_command(settings_class, lambda settings: _find(program)(settings))


def settings_command(settings_class: type[S], run: Callable[[S], int]) -> Callable[..., None]:
    """A command that reads settings from its flags and the environment, and ends with the exit code of `run`."""

    def command(**flags: Any) -> None:
        with told():
            code = run(settings_class.load(os.environ, **flags))
        raise typer.Exit(code)

    types = get_type_hints(settings_class)
    parameters = [_parameter(setting, types[setting.name]) for setting in dataclasses.fields(settings_class)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _find(program: str) -> Callable[[DatabaseSettings], int]:
    found = entry_points(group=GROUP, name=program)
    if not found:
        raise ConfigError([f"the program {program!r} is not installed here"])
    main: Callable[[DatabaseSettings], int] = next(iter(found)).load()
    return main


def _parameter(setting: dataclasses.Field[Any], kind: Any) -> inspect.Parameter:
    """A flag that is None where it was not given. The settings read its text, so that all faults come together."""
    help_text = f"{setting.metadata['meaning']} [{_remarks(setting)}]"
    flag = flag_of(setting)
    annotation: Any
    if kind is bool:
        annotation = bool | None
        option = typer.Option(None, f"{flag}/--no-{flag.removeprefix('--')}", help=help_text, show_default=False)
    elif kind == tuple[str, ...]:
        annotation = list[str] | None
        option = typer.Option(None, flag, help=f"{help_text} May be repeated.", metavar="TEXT", show_default=False)
    else:
        annotation = str | None
        metavar = "DURATION" if kind is float else "NUMBER" if kind in (int, int | None) else "TEXT"
        option = typer.Option(None, flag, help=help_text, metavar=metavar, show_default=False)
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)


def _remarks(setting: dataclasses.Field[Any]) -> str:
    remarks = [variables_of(setting)[0]]
    if setting.default is not dataclasses.MISSING and setting.default not in (None, (), False):
        shown = f"{setting.default:g}" if isinstance(setting.default, float) else str(setting.default)
        remarks.append(f"default {shown}")
    return "; ".join(remarks)
