"""`ringcron api`: serve the REST API until told to stop."""

from __future__ import annotations

import asyncio

import structlog

from ringcron import service
from ringcron.clock import SystemClock
from ringcron.errors import ConfigError
from ringcron.settings import ApiSettings
from ringcron_api.app import make_app
from ringcron_api.server import listen

_log = structlog.get_logger(__name__)


def main(settings: ApiSettings) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""

    async def body(drain: asyncio.Event) -> None:
        app = make_app(database_url=settings.database_url, pool_size=settings.pool_size, clock=SystemClock())
        try:
            runner, url = await listen(app, settings.host, settings.port)
        except OSError as error:
            raise ConfigError([f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"]) from error
        _log.info("listening", url=url, docs=f"{url}/docs")
        try:
            await drain.wait()
        finally:
            await runner.cleanup()

    return service.run("api", settings, body)
