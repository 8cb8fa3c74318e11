"""The application: what it holds, and the way of a request through it.

Invariant: it needs PostgreSQL only, and that not to start: without it the API answers, with 503 where it must.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
from aiohttp import web

from ringcron.clock import Clock
from ringcron.store.api import SESSION_OPTIONS, STATEMENT_SECONDS, ApiStore
from ringcron.store.keys import KeyStore
from ringcron.store.pool import Pool
from ringcron_api.access import Access
from ringcron_api.key_ring import KeyRing
from ringcron_api.keys import ACCESS, CLOCK, DOCUMENT, PAGE, SHARDS, STORE
from ringcron_api.middleware import admit_all, answer_all
from ringcron_api.openapi import make_document, make_page
from ringcron_api.operations import Operation
from ringcron_api.requests import BODY_LIMIT, meet_expectation
from ringcron_api.routes import OPERATIONS
from ringcron_api.shards import ShardReader

APPLICATION_NAME = "ringcron-api"


def make_app(*, database_url: str, pool_size: int, clock: Clock, may_be_open: bool) -> web.Application:
    """The API as an aiohttp application; its connections are opened and closed with it.

    `may_be_open`: without a key everybody is let in as long as no live key exists.
    """
    app = web.Application(middlewares=[answer_all, admit_all], client_max_size=BODY_LIMIT)
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
        )
        app[STORE] = ApiStore(pool, clock=clock)
        app[SHARDS] = ShardReader(app[STORE], clock)
        ring = KeyRing(KeyStore(pool, clock=clock), clock)
        app[ACCESS] = Access(ring, operations, may_be_open=may_be_open)
        yield
        await ring.close()
        await pool.close()

    app.cleanup_ctx.append(store)
    for operation in OPERATIONS:
        methods = ("GET", "HEAD") if operation.method == "GET" else (operation.method,)
        for method in methods:
            route = app.router.add_route(method, operation.path, operation.handler, expect_handler=meet_expectation)
            operations[route] = operation
    return app
