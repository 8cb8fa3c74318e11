"""The files that pages load: a style sheet, a script, an icon; under addresses that change with their text."""

from __future__ import annotations

from hashlib import sha256
from importlib import resources
from typing import Final

from aiohttp import web

from ringcron_api.problems import Problem

_KINDS: Final = {"dashboard.css": "text/css", "dashboard.js": "text/javascript", "favicon.svg": "image/svg+xml"}
_FILES: Final = {
    name: (resources.files(__package__) / "static" / name).read_bytes()  # a few kB, read once
    for name in _KINDS
}
_TAGS: Final = {name: sha256(text).hexdigest()[:12] for name, text in _FILES.items()}


def url_of(name: str) -> str:
    """Where a file is to be loaded from; another place when its text is another."""
    return f"/dashboard/static/{name}?v={_TAGS[name]}"


async def show_asset(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in _FILES:
        raise Problem("not-found", "there is no such file")
    fresh = request.query.get("v") == _TAGS[name]
    headers = {"Cache-Control": "public, max-age=31536000, immutable" if fresh else "no-cache"}
    response = web.Response(body=_FILES[name], content_type=_KINDS[name], charset="utf-8", headers=headers)
    response.enable_compression()
    return response
