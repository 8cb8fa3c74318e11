"""Listening: deadlines for slow callers, and problem documents also for what is no HTTP.

Invariant: a connection costs nothing for longer than IDLE_SECONDS unless a request on it is being answered: that is the
deadline for a request's head, and for an idle connection between requests. (The deadline of a body stands in
`requests`.) A caller that goes away does not stop what it asked for.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from aiohttp import web

from ringcron_api.problems import Problem, request_id_of, unforeseen

IDLE_SECONDS: Final = 30.0
SHUTDOWN_SECONDS: Final = 10.0
"""How long answers under way may take once the API was told to stop."""
_BACKLOG: Final = 1024

_log = structlog.get_logger(__name__)


class _Protocol(web.RequestHandler):
    """aiohttp's connection, but for the form of what it answers by itself."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that cannot be read, or that no handler saw. Closes the connection."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun: there is no room for another")
        if status < 500:
            _log.info("a request could not be read", remote=request.remote, reason=_first_line(exc))
            problem = Problem("bad-request", "the request line or a header is malformed or too long")
        else:
            _log.error("a request failed outside its handler", exc_info=exc)
            problem = unforeseen()
        response = problem.response(instance=request.path, request_id=request_id_of(request))
        response.force_close()
        return response


class Site(web.BaseSite):
    """Listens for one runner."""

    __slots__ = ("_host", "_port")

    def __init__(self, runner: web.AppRunner, host: str, port: int) -> None:
        super().__init__(runner, backlog=_BACKLOG)
        self._host = host
        self._port = port

    @property
    def name(self) -> str:
        """Where it listens, as a URL; with port 0 the port that was given to it."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{port}"

    async def start(self) -> None:
        await super().start()
        loop = asyncio.get_running_loop()
        server = self._runner.server
        assert server is not None

        def connection() -> _Protocol:
            return _Protocol(server, loop=loop, access_log=None, keepalive_timeout=IDLE_SECONDS)  # type: ignore[arg-type]

        self._server = await loop.create_server(connection, self._host, self._port, backlog=self._backlog)


async def listen(app: web.Application, host: str, port: int) -> tuple[web.AppRunner, str]:
    """Serve `app`; its URL. The caller ends it with `runner.cleanup()`. OSError where the address cannot be had."""
    runner = web.AppRunner(app, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        site = Site(runner, host, port)
        await site.start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner, site.name


def _first_line(error: BaseException | None) -> str:
    """What was wrong with a request, without what a caller put into it."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
