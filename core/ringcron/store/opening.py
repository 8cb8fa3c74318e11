"""Opening connections so that one that is given up while it opens is gone at once.

A connect that is cancelled half-way stands in a cycle of exception, frames and future, so its socket stays open until
the garbage collector comes by. PostgreSQL meanwhile waits for the rest of the log-in, for a minute by default, and
everything that needs all its backends' attention (DROP DATABASE, a barrier of any kind) waits with it.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import Any, Self

import psycopg


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
