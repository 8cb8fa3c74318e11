"""GET /shards and GET /workers: the pool as it reports itself to PostgreSQL."""

from __future__ import annotations

from aiohttp import web

from ringcron_api.answers import worker_answer
from ringcron_api.cursors import Cursors, text_from
from ringcron_api.keys import SHARDS, STORE
from ringcron_api.requests import json_answer, query_of
from ringcron_api.schemas import NoQuery, Page


async def list_shards(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    return json_answer(await request.app[SHARDS].answer())


async def list_workers(request: web.Request) -> web.Response:
    query = query_of(request, Page)
    cursors = Cursors("workers")
    after = "" if query.cursor is None else text_from(cursors.key(query.cursor))
    found = await request.app[STORE].list_workers(after=after, limit=query.limit + 1)
    workers = found[: query.limit]
    cursor = cursors.text(workers[-1].worker_id.encode()) if len(found) > len(workers) else None
    return json_answer({"items": [worker_answer(worker) for worker in workers], "nextCursor": cursor})
