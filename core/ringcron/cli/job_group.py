"""`ringcron job`, whose commands are imported when one is asked for.

The client brings an HTTP library with it; without this, each program that `ringcron` starts would carry that too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from typer.core import TyperGroup
from typer.main import get_group


class JobGroup(TyperGroup):
    """Has the commands of ringcron.cli.job."""

    def list_commands(self, ctx: Any) -> list[str]:
        self._import()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        self._import()
        return super().get_command(ctx, cmd_name)

    def _import(self) -> None:
        if not self.commands:
            self.commands = get_group(import_module("ringcron.cli.job").job).commands
