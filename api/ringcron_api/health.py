"""GET /healthz (this process answers), /readyz (it can do its work) and /metrics."""

from __future__ import annotations

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from ringcron_api.keys import STORE
from ringcron_api.problems import RETRY_AFTER_SECONDS, Problem
from ringcron_api.requests import json_answer
from ringcron_sql.migrate import required_version


async def healthz(request: web.Request) -> web.Response:
    """Depends on nothing: a database that is down is no reason to restart the API."""
    return json_answer({"ok": True})


async def readyz(request: web.Request) -> web.Response:
    version = await request.app[STORE].schema_version()
    if version < required_version():
        raise Problem(
            "store-unavailable",
            f"the schema is at version {version} and {required_version()} is needed: run `ringcron migrate`",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    return json_answer({"ready": True, "schemaVersion": version})


async def show_metrics(request: web.Request) -> web.Response:
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})
