"""What the application holds for its handlers, by typed key."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ringcron.clock import Clock
from ringcron.store.api import ApiStore
from ringcron_api.access import Access
from ringcron_api.openapi.page import Page
from ringcron_api.pool_reader import PoolReader
from ringcron_api.shards import ShardReader

CLOCK: Final = web.AppKey("clock", Clock)
STORE: Final = web.AppKey("store", ApiStore)
ACCESS: Final = web.AppKey("access", Access)
POOL: Final = web.AppKey("pool", PoolReader)
SHARDS: Final = web.AppKey("shards", ShardReader)
DOCUMENT: Final = web.AppKey("document", bytes)
"""The OpenAPI document as JSON."""
PAGE: Final = web.AppKey("page", Page)
"""The same as HTML."""
