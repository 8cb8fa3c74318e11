"""What every request goes through: an id, a problem document for every error, headers, metrics.

Invariants: nothing is done for a caller that `access` does not admit. Every answer carries an X-Request-Id, and every
answer that is not a success is a problem document with the same id. A caller's own X-Request-Id is taken over if it is
a plain short word. Only the log shows what an unforeseen error was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from aiohttp import hdrs, web

from ringcron import metrics
from ringcron.errors import StoreUnavailable
from ringcron_api.callers import actor_of, last_act_of
from ringcron_api.dashboard.problem_page import is_of_dashboard, problem_page
from ringcron_api.dashboard.stream import EVENT_STREAM
from ringcron_api.keys import ACCESS, CLOCK
from ringcron_api.problems import REQUEST_ID_HEADER, problem_of, request_id_of, unforeseen

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = structlog.get_logger(__name__)
_METHODS: Final = frozenset(hdrs.METH_ALL)
_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Server": "ringcron"}


@web.middleware
async def answer_all(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer whatever happens, and count it."""
    clock = request.app[CLOCK]
    started_at = clock.elapsed()
    request_id = request_id_of(request)
    response = await _answer(request, handler, request_id)
    for name, value in {**_HEADERS, REQUEST_ID_HEADER: request_id}.items():
        response.headers.setdefault(name, value)
    route = _route_of(request)
    method = request.method if request.method in _METHODS else "other"
    metrics.HTTP_REQUESTS.labels(method, route, str(response.status)).inc()
    if response.content_type != EVENT_STREAM:  # that is as long as somebody looks, and says nothing of how quick we are
        metrics.HTTP_DURATION[route].observe(clock.elapsed() - started_at)
    return response


@web.middleware
async def admit_all(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let the caller in before anything is done for it, and say in the log who did what to a job."""
    await request.app[ACCESS].admit(request)
    response = await handler(request)
    act = last_act_of(request)
    if act is not None and response.status < 400:
        _log.info("acted", action=act.action.value, by=actor_of(request), path=request.path, request_id=act.request_id)
    return response


async def _answer(request: web.Request, handler: Handler, request_id: str) -> web.StreamResponse:
    try:
        return await handler(request)
    except ConnectionError:  # the caller has gone; there is nobody to answer
        raise
    except Exception as error:
        problem = problem_of(error)
        if problem is None:
            _log.exception("request failed", request_id=request_id, method=request.method, route=_route_of(request))
            problem = unforeseen()
        elif isinstance(error, StoreUnavailable):
            _log.warning("the database cannot be used", request_id=request_id, reason=str(error))
        if is_of_dashboard(request):
            return problem_page(request, problem, request_id)
        return problem.response(instance=request.path, request_id=request_id)


def _route_of(request: web.Request) -> str:
    """The path's template, so that the label comes from a closed list."""
    resource = request.match_info.route.resource
    return "unmatched" if resource is None else resource.canonical
