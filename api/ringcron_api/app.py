"""The application: what it holds, and the way of a request through it.

Invariant: it needs PostgreSQL only, and that not to start: without it the API answers, with 503 where it must.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Literal

import orjson
from aiohttp import web

from ringcron.clock import Clock
from ringcron.settings import OVERDUE_SECONDS
from ringcron.store.api import PATIENT_SECONDS, SESSION_OPTIONS, STATEMENT_SECONDS, ApiStore
from ringcron.store.bell import Ringer
from ringcron.store.keys import KeyStore
from ringcron.store.link import Link
from ringcron.store.pool import Pool
from ringcron_api.access import Access
from ringcron_api.bell import RINGER, ring_all
from ringcron_api.dashboard.keys import PAINTER, STREAM
from ringcron_api.dashboard.picture import Painter
from ringcron_api.dashboard.routes import PAGES
from ringcron_api.dashboard.stream import Stream
from ringcron_api.forecasts import FORECASTER, Forecaster
from ringcron_api.hosts import Hosts
from ringcron_api.idempotency import AnswerOnce
from ringcron_api.key_ring import READ_SECONDS, KeyRing
from ringcron_api.keys import ACCESS, CLOCK, DOCUMENT, PAGE, POOL, SHARDS, STORE
from ringcron_api.middleware import admit_all, answer_all
from ringcron_api.openapi import make_document, make_page
from ringcron_api.operations import BODY_LIMIT, Operation
from ringcron_api.pool_reader import PoolReader
from ringcron_api.requests import meet_expectation
from ringcron_api.routes import OPERATIONS
from ringcron_api.shards import ShardReader

APPLICATION_NAME = "ringcron-api"


def make_app(
    *,
    database_url: str,
    pool_size: int,
    clock: Clock,
    may_be_open: bool,
    allowed_hosts: Collection[str] = (),
    overdue_seconds: float = OVERDUE_SECONDS,
    bell: Literal["listen", "poll"] = "listen",
    behind_pooler: bool = False,
) -> web.Application:
    """The API as an aiohttp application; its connections are opened and closed with it.

    `may_be_open`: without a key everybody is let in as long as no live key exists, who calls by a name of this machine
    or one of `allowed_hosts`. `overdue_seconds`: as the coordinators have it. `bell` "poll": workers are told nothing,
    they look. `behind_pooler`: nothing is kept in sessions of the database.
    """
    app = web.Application(middlewares=[answer_all, admit_all, ring_all], client_max_size=BODY_LIMIT)
    operations: dict[web.AbstractRoute, Operation] = {}
    document = make_document(OPERATIONS)
    app[CLOCK] = clock
    app[DOCUMENT] = orjson.dumps(document)
    app[PAGE] = make_page(document)

    async def store(app: web.Application) -> AsyncIterator[None]:
        pool = Pool(
            database_url,
            application_name=APPLICATION_NAME,
            max_size=pool_size,
            seconds=STATEMENT_SECONDS,
            options=SESSION_OPTIONS,
            behind_pooler=behind_pooler,
        )
        app[STORE] = ApiStore(pool, clock=clock, patient=pool.patient(PATIENT_SECONDS))
        app[POOL] = PoolReader(app[STORE], clock)
        app[SHARDS] = ShardReader(app[POOL])
        app[FORECASTER] = Forecaster(app[STORE], app[POOL], clock)
        app[PAINTER] = Painter(app[STORE], app[POOL], app[FORECASTER], clock, overdue_seconds=overdue_seconds)
        app[STREAM] = Stream(app[PAINTER], clock)
        key_link = Link(
            database_url,
            application_name=f"{APPLICATION_NAME}/keys",
            seconds=READ_SECONDS,
            behind_pooler=behind_pooler,
        )
        ring = KeyRing(KeyStore(key_link, clock=clock), KeyStore(pool, clock=clock), clock)
        hosts = Hosts(allowed_hosts)
        app[ACCESS] = Access(ring, operations, may_be_open=may_be_open, hosts=hosts, now=app[STORE].now)
        yield
        await app[PAINTER].close()
        await ring.close()
        await key_link.close()
        await pool.close()

    async def ringer(app: web.Application) -> AsyncIterator[None]:
        app[RINGER] = Ringer(database_url, application_name=f"{APPLICATION_NAME}/bell", behind_pooler=behind_pooler)
        await app[RINGER].start()
        yield
        await app[RINGER].close()

    async def end_streams(app: web.Application) -> None:
        await app[STREAM].close()

    app.cleanup_ctx.append(store)
    app.on_shutdown.append(end_streams)
    if bell == "listen":
        app.cleanup_ctx.append(ringer)
    once = AnswerOnce(clock)
    for operation in (*OPERATIONS, *PAGES):
        handler = once.wrap(operation) if operation.idempotent else operation.handler
        methods = ("GET", "HEAD") if operation.method == "GET" else (operation.method,)
        for method in methods:
            route = app.router.add_route(method, operation.path, handler, expect_handler=meet_expectation)
            operations[route] = operation
    return app
