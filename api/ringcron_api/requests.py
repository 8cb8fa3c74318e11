"""What a handler reads of a request: its body as strict JSON, its query, the id in its path, its store.

Invariant: a body is read whole, within a limit of bytes and of time, before anything else is done for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import orjson
from aiohttp import web

from ringcron.errors import JobNotFound
from ringcron.store.api import ApiStore
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.keys import STORE
from ringcron_api.operations import BODY_LIMIT
from ringcron_api.problems import Problem, request_id_of
from ringcron_api.schemas import Q, names_of, read
from ringcron_api.strict_json import read_json

BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive."""
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
_BODY: Final = web.RequestKey("body", bytes)
_STORE: Final = web.RequestKey("store", ApiStore)
_LARGE: Final = 64 * 1024
"""From this size a body is read in a thread, so that others are answered meanwhile."""


async def json_body(request: web.Request, kinds: Sequence[str] = (JSON,)) -> tuple[Any, list[Fault]]:
    """The body's value and what in it cannot be held.

    Raises Problem (unsupported-media-type, payload-too-large, request-timeout, bad-request) and MalformedJson.
    """
    demand_json(request, kinds)
    body = await read_body(request)
    if len(body) > _LARGE:
        return await asyncio.to_thread(read_json, body)
    return read_json(body)


def demand_json(request: web.Request, kinds: Sequence[str]) -> None:
    """Raises Problem `unsupported-media-type` unless the body is one of `kinds`, in UTF-8 and uncompressed."""
    given = request.headers.get("Content-Type")
    if given not in kinds:  # else there are no parameters to be read
        if given is None or request.content_type not in kinds:
            raise Problem("unsupported-media-type", f"send JSON, with Content-Type: {' or '.join(kinds)}")
        if request.charset not in (None, "utf-8", "UTF-8"):
            raise Problem("unsupported-media-type", "send UTF-8, the only encoding that JSON has")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Problem("unsupported-media-type", "send the body uncompressed")


async def read_body(request: web.Request, limit: int = BODY_LIMIT) -> bytes:
    """The whole body; a second call gives the same. Raises Problem."""
    if _BODY in request:
        return request[_BODY]
    if (request.content_length or 0) > limit:
        raise _too_large(limit)
    if request.content.is_eof() and request.content.exception() is None:  # a small body came with its head
        body = request.content.read_nowait()
        if len(body) > limit:
            raise _too_large(limit)
        request[_BODY] = body
        return body
    parts = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.content.iter_any():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
    except TimeoutError:
        detail = f"the body did not arrive within {BODY_SECONDS:g} s"
        raise Problem("request-timeout", detail, headers={"Connection": "close"}) from None
    except web.RequestPayloadError:
        raise Problem("bad-request", "the body does not arrive as its headers say") from None
    request[_BODY] = b"".join(parts)
    return request[_BODY]


def _too_large(limit: int) -> Problem:
    return Problem("payload-too-large", f"the body has more than {limit} bytes", headers={"Connection": "close"})


def store_of(request: web.Request) -> ApiStore:
    """The store for this request: within the transaction of its answer, where there is one."""
    return request.get(_STORE) or request.app[STORE]


def put_within(request: web.Request, store: ApiStore) -> None:
    """Let the request be answered with this store, which is a transaction."""
    request[_STORE] = store


def is_within(request: web.Request) -> bool:
    """Whether all that is done for this request is one transaction."""
    return _STORE in request


def query_of(request: web.Request, model: type[Q]) -> Q:
    """The parameters after the `?`. Raises ValidationFailed."""
    faults = []
    given: dict[str, str] = {}
    for name, text in request.query.items():
        if name in given:
            faults.append(Fault(pointer=f"/{name}", code="invalid", detail="is given twice", place="query"))
        if "\0" in text:
            detail = "holds the character U+0000, which nothing stored can have"
            faults.append(Fault(pointer=f"/{name}", code="nul-character", detail=detail, place="query"))
        given[name] = text
    query, in_model = read(model, given, known={(): names_of(model)}, place="query")
    if query is None or faults or in_model:
        raise ValidationFailed([*faults, *in_model])
    return query


def job_id_of(request: web.Request) -> UUID:
    """The id in the path. JobNotFound where it is no id at all: no job can have it."""
    return parse_job_id(request.match_info["jobId"])


def parse_job_id(text: str) -> UUID:
    """The id that a text is. JobNotFound where it is none."""
    try:
        job_id = UUID(text)
    except ValueError:
        raise JobNotFound(f"no job has the id {text[:64]}") from None
    if str(job_id) != text.lower():
        raise JobNotFound(f"no job has the id {text[:64]}")
    return job_id


def json_answer(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A success."""
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json", headers=headers)


def next_page(request: web.Request, cursor: str | None) -> dict[str, str]:
    """The header `Link` to the next page of a bare array (RFC 8288); nothing on the last page."""
    if cursor is None:
        return {}
    return {"Link": f'<{request.rel_url.update_query(cursor=cursor)}>; rel="next"'}


async def meet_expectation(request: web.Request) -> web.StreamResponse | None:
    """Ask for the body that a caller holds back (`Expect: 100-continue`); refuse any other expectation."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer itself has not begun
        return None
    problem = Problem("expectation-failed", "only Expect: 100-continue is known here")
    return problem.response(instance=request.path, request_id=request_id_of(request))
