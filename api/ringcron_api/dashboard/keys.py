"""What the application holds for the dashboard, by typed key."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ringcron_api.dashboard.picture import Painter
from ringcron_api.dashboard.stream import Stream

PAINTER: Final = web.AppKey("painter", Painter)
STREAM: Final = web.AppKey("stream", Stream)
