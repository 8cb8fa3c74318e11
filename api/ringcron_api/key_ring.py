"""The live API keys as this process knows them, and how much of its rate each has left.

Invariant: no call is let in by a picture of the keys that was taken more than BOUND_SECONDS before, so a key that was
revoked opens nothing after that; where the keys cannot be read, nothing is let in. A key that is not in the picture is
looked for once more, so that a new one works at once; strangers make that happen NEWS_SECONDS apart at most. Pictures
are taken over a connection that does nothing else: calls that wait for the pool must not make known keys unknown.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping
from typing import Any, Final

import structlog

from ringcron.api_keys import ApiKey
from ringcron.clock import Clock
from ringcron.errors import StoreUnavailable
from ringcron.store.keys import KeyStore
from ringcron_api.rates import TokenBucket

REFRESH_SECONDS: Final = 2.0
"""A picture older than this is renewed, beside the calls that still use it."""
BOUND_SECONDS: Final = 5.0
"""A picture older than this is not used."""
NEWS_SECONDS: Final = 0.5
READ_SECONDS: Final = 2.0
"""The limit on one look at the keys, which is tried twice before a call has waited too long."""
ANSWER_SECONDS: Final = 5.0
"""How long a call waits for the keys."""
CLOSE_SECONDS: Final = 1.0
TOUCH_SECONDS: Final = 60.0
"""The use of a key is noted this often at most."""

_log = structlog.get_logger(__name__)


class KeyRing:
    """The live keys, by id."""

    def __init__(self, reading: KeyStore, noting: KeyStore, clock: Clock) -> None:
        """`reading` is asked for the keys, and by nobody else; `noting` is told which were used."""
        self._reader = reading
        self._noter = noting
        self._clock = clock
        self._keys: Mapping[str, ApiKey] = {}
        self._taken_at = -math.inf
        self._reading: asyncio.Task[None] | None = None
        self._buckets: dict[str, TokenBucket] = {}
        self._touched_at: dict[str, float] = {}
        self._working: set[asyncio.Task[None]] = set()

    async def any_live(self) -> bool:
        """Whether there is a key at all. Raises StoreUnavailable."""
        return bool(await self._live())

    async def find(self, key_id: str) -> ApiKey | None:
        """The live key of an id. Raises StoreUnavailable."""
        key = (await self._live()).get(key_id)
        if key is None and self._age() > NEWS_SECONDS:
            await self._wait_for(self._read_once())
            key = (await self._live()).get(key_id)
        return key

    @property
    def known(self) -> Mapping[str, ApiKey]:
        """The keys as they were last read, however long ago: for what needs no database."""
        return self._keys

    def wait_seconds(self, key: ApiKey) -> float:
        """0.0 where the key may be used now, and then it counts as used; else how long to wait."""
        if key.rate_per_second is None or key.burst is None:
            return 0.0
        now = self._clock.elapsed()
        bucket = self._buckets.get(key.id)
        if bucket is None or (bucket.rate_per_second, bucket.burst) != (key.rate_per_second, key.burst):
            bucket = self._buckets[key.id] = TokenBucket(key.rate_per_second, key.burst, now)
        return bucket.take(now)

    def touch(self, key: ApiKey) -> None:
        """Note beside the call that the key was used, unless that was done within the last minute."""
        now = self._clock.elapsed()
        if now - self._touched_at.get(key.id, now - TOUCH_SECONDS) >= TOUCH_SECONDS:
            self._touched_at[key.id] = now
            self._start(self._touch(key.id))

    async def close(self) -> None:
        """Wait a moment for what is under way, then give it up."""
        if self._working:
            _, late = await asyncio.wait(self._working, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()

    async def _live(self) -> Mapping[str, ApiKey]:
        """The keys in a picture that may be used."""
        while self._age() > BOUND_SECONDS:
            await self._wait_for(self._read_once())
        if self._age() > REFRESH_SECONDS:
            self._read_once()
        return self._keys

    def _age(self) -> float:
        return self._clock.elapsed() - self._taken_at

    def _read_once(self) -> asyncio.Task[None]:
        if self._reading is None or self._reading.done():
            self._reading = self._start(self._read())
        return self._reading

    async def _wait_for(self, reading: asyncio.Task[None]) -> None:
        # Not cancelled where this caller gives up: others wait for it too, and it ends by itself.
        done, _ = await asyncio.wait((reading,), timeout=ANSWER_SECONDS)
        if not done:
            raise StoreUnavailable(f"the keys could not be read within {ANSWER_SECONDS:g} s")
        await reading

    async def _read(self) -> None:
        taken_at = self._clock.elapsed()
        keys = await self._reader.list_keys(live_only=True)
        self._keys = {key.id: key for key in keys}
        self._taken_at = taken_at
        for left in (self._buckets.keys() | self._touched_at.keys()) - self._keys.keys():
            self._buckets.pop(left, None)
            self._touched_at.pop(left, None)

    async def _touch(self, key_id: str) -> None:
        try:
            await self._noter.touch_key(key_id)
        except StoreUnavailable as error:
            _log.warning("the use of a key could not be noted", key=key_id, reason=str(error))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        if not task.cancelled():
            task.exception()  # seen: nobody may be waiting for it any more
