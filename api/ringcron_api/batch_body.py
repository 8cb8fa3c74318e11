"""The body of POST /jobs/batch: `{"jobs": [...]}`, or one job on each line (NDJSON).

Invariant: what a line or an element says concerns that job alone; only a body that cannot be taken apart, or has too
many jobs, is refused as a whole. Elements are read as they are asked for, so that no step takes long.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Final

import orjson
from aiohttp import web

from ringcron_api.faults import Fault, ValidationFailed, nearest, pointer_to
from ringcron_api.operations import BODY_LIMIT, NDJSON
from ringcron_api.problems import Problem
from ringcron_api.requests import demand_json, read_body
from ringcron_api.strict_json import read_json, second_look

JOBS_LIMIT: Final = 10_000
BATCH_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of a body."""
_WITHIN_JOB: Final = re.compile(r"/jobs/(\d+)((?:/.*)?)", re.DOTALL)


class BatchBody(ABC):
    """The jobs of a batch, unread."""

    media_type: str

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self, index: int) -> tuple[Any, list[Fault]]:
        """One job's value, and what in it cannot be held. Raises MalformedJson, and Problem `payload-too-large`."""

    @abstractmethod
    def pointer(self, index: int) -> str:
        """Where in the body a job stands."""


class _Lines(BatchBody):
    media_type = NDJSON

    def __init__(self, body: bytes) -> None:
        self._lines = [line for line in body.split(b"\n") if line.strip()]

    def __len__(self) -> int:
        return len(self._lines)

    def read(self, index: int) -> tuple[Any, list[Fault]]:
        line = self._lines[index]
        if len(line) > BODY_LIMIT:
            raise Problem("payload-too-large", f"the line has more than {BODY_LIMIT} bytes")
        return read_json(line)

    def pointer(self, index: int) -> str:
        return f"/{index}"


class _Elements(BatchBody):
    media_type = "application/json"

    def __init__(self, elements: list[Any], held_back: dict[int, list[Fault]]) -> None:
        self._elements = elements
        self._held_back = held_back

    def __len__(self) -> int:
        return len(self._elements)

    def read(self, index: int) -> tuple[Any, list[Fault]]:
        return self._elements[index], self._held_back.get(index, [])

    def pointer(self, index: int) -> str:
        return f"/jobs/{index}"


async def read_batch(request: web.Request) -> BatchBody:
    """The body, taken apart. Raises Problem, MalformedJson and ValidationFailed."""
    demand_json(request, ("application/json", NDJSON))
    body = await read_body(request, BATCH_LIMIT)
    if request.content_type == NDJSON:
        lines = _Lines(body)
        _refuse_many(len(lines), "")
        return lines
    document, faults = await asyncio.to_thread(_read_whole, body)
    faults += _faults_of_envelope(document)
    of_jobs, others = _sort(faults)
    if others:
        raise ValidationFailed(others)
    elements = document["jobs"]
    _refuse_many(len(elements), "/jobs")
    return _Elements(elements, of_jobs)


def _read_whole(body: bytes) -> tuple[Any, list[Fault]]:
    """As `read_json`; but the depth and the numbers of a body with many jobs are judged job by job."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return read_json(body)
    jobs = document.get("jobs") if isinstance(document, dict) and len(document) == 1 else None
    if not isinstance(jobs, list) or len(jobs) > JOBS_LIMIT:
        return read_json(body)
    # Two levels stand around each job, so it may be no deeper than MAX_DEPTH less these.
    sound = all(second_look([[job]], b"[[%b]]" % orjson.dumps(job)) == [] for job in jobs)
    return (document, []) if sound else read_json(body)


def _faults_of_envelope(document: Any) -> list[Fault]:
    if not isinstance(document, dict):
        return [Fault(pointer="", code="type", detail="must be an object with the member jobs")]
    faults = [
        Fault(pointer=pointer_to([name]), code="unknown-field", detail=nearest(name, ["jobs"], what="field"))
        for name in document
        if name != "jobs"
    ]
    if "jobs" not in document:
        faults.append(Fault(pointer="/jobs", code="required", detail="is required"))
    elif not isinstance(document["jobs"], list):
        faults.append(Fault(pointer="/jobs", code="type", detail="must be a list"))
    return faults


def _sort(faults: list[Fault]) -> tuple[dict[int, list[Fault]], list[Fault]]:
    """Faults within a job, by its index and with a pointer into it; and the others."""
    of_jobs: dict[int, list[Fault]] = {}
    others = []
    for fault in faults:
        place = _WITHIN_JOB.fullmatch(fault.pointer)
        if place is None:
            others.append(fault)
        else:
            of_jobs.setdefault(int(place[1]), []).append(replace(fault, pointer=place[2]))
    return of_jobs, others


def _refuse_many(count: int, pointer: str) -> None:
    if count > JOBS_LIMIT:
        detail = f"must have at most {JOBS_LIMIT} jobs, and has {count}"
        raise ValidationFailed([Fault(pointer=pointer, code="out-of-range", detail=detail)])
