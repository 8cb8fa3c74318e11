"""Connections as ringcron opens them: one that is given up while it opens is gone at once, and errors tell no values.

A connect that is cancelled half-way stands in a cycle of exception, frames and future, so its socket stays open until
the garbage collector comes by. PostgreSQL meanwhile waits for the rest of the log-in, for a minute by default, and
everything that needs all its backends' attention (DROP DATABASE, a barrier of any kind) waits with it.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import Any, Self

import psycopg

from ringcron.store.fault_text import tell_no_values


class OpenedConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """What every connection of ringcron is opened as."""

    @classmethod
    async def connect(cls, conninfo: str = "", **parameters: Any) -> Self:
        """As psycopg's. A connect that is cancelled has closed its socket when this raises."""
        try:
            return await super().connect(conninfo, **parameters)
        except asyncio.CancelledError as cut:
            traceback.clear_frames(cut.__traceback__)
            raise

    async def wait(self, *arguments: Any, **options: Any) -> Any:
        """As psycopg's, through which every statement goes."""
        try:
            return await super().wait(*arguments, **options)
        except psycopg.Error as error:
            tell_no_values(error)
            raise
