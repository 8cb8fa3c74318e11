"""API keys for tests, put straight into the database as `ringcron key add` does, and a clock that can be moved on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from ringcron.api_keys import KeyText, Scope
from ringcron.clock import SystemClock
from ringcron.store.keys import KeyStore
from ringcron.store.link import Link


class MovableClock(SystemClock):
    """The machine's clock, plus what the test has skipped."""

    def __init__(self) -> None:
        self.skipped_seconds = 0.0

    def skip(self, seconds: float) -> None:
        self.skipped_seconds += seconds

    def elapsed(self) -> float:
        return super().elapsed() + self.skipped_seconds


class Keys:
    """The keys of one database."""

    def __init__(self, store: KeyStore) -> None:
        self.store = store
        self._made = 0

    async def add(
        self,
        scope: Scope = Scope.WRITE,
        *,
        name: str | None = None,
        rate: float | None = None,
        burst: int | None = None,
    ) -> KeyText:
        self._made += 1
        key = KeyText.draw()
        name = name or f"{scope.value}-{self._made}"
        await self.store.add_key(key, name=name, scope=scope, rate_per_second=rate, burst=burst)
        return key

    async def revoke(self, key: KeyText) -> None:
        await self.store.revoke_key(key.id)

    async def last_used_at(self, key: KeyText) -> datetime | None:
        return next(one.last_used_at for one in await self.store.list_keys(live_only=False) if one.id == key.id)


@asynccontextmanager
async def keys_of(database_url: str) -> AsyncIterator[Keys]:
    link = Link(database_url, application_name="test-keys", seconds=10)
    try:
        yield Keys(KeyStore(link, clock=SystemClock()))
    finally:
        await link.close()


def bearer(key: KeyText) -> dict[str, str]:
    """The headers of a caller that has the key."""
    return {"Authorization": f"Bearer {key.reveal()}"}
