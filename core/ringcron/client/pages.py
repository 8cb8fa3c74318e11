"""Lists that come in pages.

    async for job in client.list_jobs(state=JobState.DEAD): …
    async for page in client.list_jobs().pages(): …

Invariant: a page is fetched when its first element is asked for, and none after the last one that was asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ringcron.client.values import Value

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page(Value, Generic[T]):
    """Some elements of a list. `next_cursor` None: there are no more."""

    items: tuple[T, ...]
    next_cursor: str | None


class Listing(Generic[T]):
    """A list, to be walked through by element or by page, from its beginning each time."""

    def __init__(self, fetch: Callable[[str | None], Awaitable[Page[T]]], cursor: str | None = None) -> None:
        """`fetch` gives the page after a cursor. `cursor`: where to begin, the `next_cursor` of an earlier page."""
        self._fetch = fetch
        self._cursor = cursor

    async def pages(self) -> AsyncIterator[Page[T]]:
        """The pages in order; at least one."""
        cursor = self._cursor
        while True:
            page = await self._fetch(cursor)
            yield page
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item
