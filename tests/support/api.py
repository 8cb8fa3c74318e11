"""The API in this process, on a real socket, and a caller that holds every answer against the OpenAPI document.

async with running_api(database_url) as api:
    answer = await api.post("/jobs", {"runAt": "2027-01-01T00:00:00Z"})
    assert answer.status == 201
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import aiohttp
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from ringcron.clock import Clock, SystemClock
from ringcron.settings import OVERDUE_SECONDS
from ringcron_api.app import make_app
from ringcron_api.openapi import make_document
from ringcron_api.routes import OPERATIONS
from ringcron_api.server import listen

DOCUMENT = make_document(OPERATIONS)
_ROUTES = [
    (operation.method, re.compile(re.sub(r"\{\w+\}", "[^/]+", operation.path)), operation.path)
    for operation in OPERATIONS
]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back. `body` is the JSON value, or text where it is no JSON, or None."""

    status: int
    headers: Mapping[str, str]
    body: Any

    def __getitem__(self, name: str) -> Any:
        return self.body[name]

    @property
    def faults(self) -> dict[str, str]:
        """Pointer → code."""
        return {fault["pointer"]: fault["code"] for fault in self.body["errors"]}


class ApiCaller:
    """Calls one API."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session

    async def get(self, path: str, **query: str | int) -> Answer:
        return await self.call("GET", path, params=query)

    async def post(self, path: str, body: Any, **query: str) -> Answer:
        return await self.call("POST", path, json=body, params=query)

    async def post_raw(self, path: str, body: bytes, content_type: str | None = "application/json") -> Answer:
        headers = {} if content_type is None else {"Content-Type": content_type}
        return await self.call("POST", path, data=io.BytesIO(body), headers=headers)

    async def patch(self, path: str, body: Any, **query: str) -> Answer:
        return await self.call("PATCH", path, json=body, params=query)

    async def delete(self, path: str, **query: str) -> Answer:
        return await self.call("DELETE", path, params=query)

    async def call(self, method: str, path: str, **keywords: Any) -> Answer:
        async with self.session.request(method, self.url + path, **keywords) as response:
            text = await response.text()
            kind = response.content_type
            body = _value(kind, text)
            answer = Answer(status=response.status, headers=response.headers, body=body)
        check(method, path, answer, kind)
        return answer


def _value(kind: str, text: str) -> Any:
    if kind.endswith("ndjson"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text) if kind.endswith("json") and text else text or None


def check(method: str, path: str, answer: Answer, kind: str) -> None:
    """AssertionError where the document does not describe this answer to this call."""
    path = path.partition("?")[0]
    template = next((t for m, pattern, t in _ROUTES if m == method and pattern.fullmatch(path)), None)
    if template is None:
        assert answer.status in (400, 404, 405, 417), answer
        schema: dict[str, Any] = {"$ref": "#/components/schemas/Problem"}
    else:
        responses = DOCUMENT["paths"][template][method.lower()]["responses"]
        assert str(answer.status) in responses, f"{method} {template} answered {answer.status}: not in the document"
        contents = responses[str(answer.status)].get("content", {})
        if not contents:
            assert answer.body is None
            return
        assert kind in contents, f"{method} {template} {answer.status} answered {kind}"
        schema = contents[kind]["schema"]
    assert answer.headers["X-Request-Id"]
    if answer.status >= 400:
        assert kind == "application/problem+json"
        assert answer["status"] == answer.status
        assert answer["requestId"] == answer.headers["X-Request-Id"]
    for value in answer.body if kind.endswith("ndjson") else [answer.body]:
        validate(schema, value)


def validate(schema: Mapping[str, Any], value: Any) -> None:
    """ValidationError where `value` is not what `schema` of the document allows."""
    validator(json.dumps(schema, sort_keys=True)).validate(value)


@cache
def validator(schema: str) -> Draft202012Validator:
    resource = Resource.from_contents(DOCUMENT, default_specification=DRAFT202012)
    registry = Registry().with_resource("urn:document", resource)
    absolute = json.loads(schema.replace('"#/components/', '"urn:document#/components/'))
    return Draft202012Validator(absolute, registry=registry, format_checker=FormatChecker())


@asynccontextmanager
async def running_api(
    database_url: str,
    *,
    pool_size: int = 8,
    may_be_open: bool = True,
    clock: Clock | None = None,
    overdue_seconds: float = OVERDUE_SECONDS,
    allowed_hosts: Collection[str] = (),
    behind_pooler: bool = False,
) -> AsyncIterator[ApiCaller]:
    """The API on a free port of the loopback interface."""
    app = make_app(
        database_url=database_url,
        pool_size=pool_size,
        clock=clock or SystemClock(),
        may_be_open=may_be_open,
        overdue_seconds=overdue_seconds,
        allowed_hosts=allowed_hosts,
        behind_pooler=behind_pooler,
    )
    runner, url = await listen(app, "127.0.0.1", 0)
    try:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield ApiCaller(url, session)
    finally:
        await runner.cleanup()
