"""GET /openapi.json and /docs: the same document for programs and for people."""

from __future__ import annotations

from aiohttp import web

from ringcron_api.keys import DOCUMENT, PAGE


async def show_document(request: web.Request) -> web.Response:
    return web.Response(body=request.app[DOCUMENT], content_type="application/json")


async def show_page(request: web.Request) -> web.Response:
    page = request.app[PAGE]
    headers = {"Content-Security-Policy": page.policy, "Referrer-Policy": "no-referrer"}
    return web.Response(text=page.html, content_type="text/html", charset="utf-8", headers=headers)
