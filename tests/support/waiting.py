"""Wait for conditions, never for time: a test says what must become true and within how long."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(condition: Callable[[], T | Awaitable[T]], *, seconds: float = 30.0, what: str = "") -> T:
    """The first true value of `condition` (a plain or an async function). AssertionError after `seconds`.

    An exception of the condition is raised at once; a condition that may fail for a while catches it itself.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what or _source(condition)}"
        await asyncio.sleep(0.01)


def until_sync(condition: Callable[[], T], *, seconds: float = 30.0, what: str = "") -> T:
    """`until` for tests that have no event loop."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what or _source(condition)}"
        time.sleep(0.01)


def _source(condition: Callable[[], object]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except OSError:
        return repr(condition)
