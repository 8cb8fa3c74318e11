"""What a handler reads of a request: its body as strict JSON, its query, the id in its path.

Invariant: a body is read whole, within a limit of bytes and of time, before anything else is done for it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from uuid import UUID

import orjson
from aiohttp import web

from ringcron.errors import JobNotFound
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.problems import Problem, request_id_of
from ringcron_api.schemas import Q, names_of, read
from ringcron_api.strict_json import read_json

BODY_LIMIT: Final = 1024 * 1024
"""Bytes of a body."""
BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive."""
_LARGE: Final = 64 * 1024
"""From this size a body is read in a thread, so that others are answered meanwhile."""


async def json_body(request: web.Request) -> tuple[Any, list[Fault]]:
    """The body's value and what in it cannot be held.

    Raises Problem (unsupported-media-type, request-timeout, bad-request) and MalformedJson.
    """
    if request.content_type != "application/json" or "Content-Type" not in request.headers:
        raise Problem("unsupported-media-type", "send JSON, with Content-Type: application/json")
    if request.charset not in (None, "utf-8", "UTF-8"):
        raise Problem("unsupported-media-type", "send UTF-8, the only encoding that JSON has")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Problem("unsupported-media-type", "send the body uncompressed")
    if (request.content_length or 0) > BODY_LIMIT:
        raise Problem(
            "payload-too-large", f"the body has more than {BODY_LIMIT} bytes", headers={"Connection": "close"}
        )
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await request.read()
    except TimeoutError:
        detail = f"the body did not arrive within {BODY_SECONDS:g} s"
        raise Problem("request-timeout", detail, headers={"Connection": "close"}) from None
    except web.RequestPayloadError:
        raise Problem("bad-request", "the body does not arrive as its headers say") from None
    if len(body) > _LARGE:
        return await asyncio.to_thread(read_json, body)
    return read_json(body)


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
    text = request.match_info["jobId"]
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
