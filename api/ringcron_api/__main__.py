"""`ringcron api`: serve the REST API until told to stop."""

from __future__ import annotations

import asyncio
import gc
from typing import Final

import structlog

from ringcron import service
from ringcron.clock import Clock, SystemClock
from ringcron.errors import ConfigError, StoreUnavailable
from ringcron.readers import is_loopback
from ringcron.settings import ApiSettings
from ringcron.store.keys import KeyStore
from ringcron.store.link import Link
from ringcron.store.pooled import API_PLANS, missing_role_settings
from ringcron_api.app import APPLICATION_NAME, make_app
from ringcron_api.server import listen

_log = structlog.get_logger(__name__)


START_SECONDS: Final = 5.0


async def demand_a_key(settings: ApiSettings, clock: Clock) -> None:
    """Raises ConfigError where others than this machine could call and there is no key for them to show.

    Where the database cannot be asked, the API starts: it then lets nobody in until it can.
    """
    if settings.insecure or is_loopback(settings.host):
        return
    link = Link(
        settings.database_url,
        application_name=APPLICATION_NAME,
        seconds=START_SECONDS,
        behind_pooler=settings.behind_pooler,
    )
    try:
        keys = await KeyStore(link, clock=clock).list_keys(live_only=True)
    except StoreUnavailable as error:
        _log.warning("whether there are keys is not known; nobody is let in until it is", reason=str(error))
        return
    finally:
        await link.close()
    if not keys:
        raise ConfigError(
            [
                f"RINGCRON_API_HOST is {settings.host!r} and there is no API key, so that whoever reaches the API "
                "could schedule anything: make one with `ringcron key add NAME --scope write`, keep to 127.0.0.1, "
                "or say --insecure"
            ]
        )


async def look_at_plans(settings: ApiSettings, clock: Clock) -> None:
    """Warns where the role does not say what the API behind a pooler cannot say itself."""
    try:
        missing = await missing_role_settings(
            settings.database_url, API_PLANS, application_name=APPLICATION_NAME, clock=clock
        )
    except StoreUnavailable as error:
        _log.warning("whether the role has the planner settings of the API is not known", reason=str(error))
        return
    if missing:
        _log.warning("lists may be slow: the role lacks planner settings", remedy=" ".join(missing))


def main(settings: ApiSettings) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""

    async def body(drain: asyncio.Event) -> None:
        clock = SystemClock()
        await demand_a_key(settings, clock)
        if settings.behind_pooler:
            await look_at_plans(settings, clock)
        app = make_app(
            database_url=settings.database_url,
            pool_size=settings.pool_size,
            clock=clock,
            may_be_open=settings.may_be_open,
            allowed_hosts=(settings.host, *settings.allowed_hosts),
            overdue_seconds=settings.overdue_seconds,
            bell=settings.bell,
            behind_pooler=settings.behind_pooler,
        )
        try:
            runner, url = await listen(app, settings.host, settings.port)
        except OSError as error:
            raise ConfigError([f"cannot listen on {settings.host}:{settings.port}: {error.strerror}"]) from error
        gc.collect()
        gc.freeze()  # what is there now stays: every full collection would walk it, and hold the loop for 50 ms
        _log.info("listening", url=url, docs=f"{url}/docs", open_without_keys=settings.may_be_open)
        try:
            await drain.wait()
        finally:
            await runner.cleanup()

    return service.run("api", settings, body)
