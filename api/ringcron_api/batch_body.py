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
_HEAD: Final = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"jobs"[ \t\r\n]*:[ \t\r\n]*\[[ \t\r\n]*')
_TAIL: Final = re.compile(rb"[ \t\r\n]*\][ \t\r\n]*\}[ \t\r\n]*\Z")
_TAIL_BYTES: Final = 100
_BETWEEN: Final = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*(?=\{)")
_GROUP_BYTES: Final = 128 * 1024
_CUTS_TRIED: Final = 8
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
        self._lines = [line for line in body.split(b"\n") if line and not line.isspace()]

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
    await asyncio.sleep(0)
    if request.content_type == NDJSON:
        lines = _Lines(body)
        _refuse_many(len(lines), "")
        return lines
    jobs = await _read_in_groups(body)
    if jobs is not None:
        _refuse_many(len(jobs), "/jobs")
        return _Elements(jobs, {})
    document, faults = await asyncio.to_thread(read_json, body)
    faults += _faults_of_envelope(document)
    of_jobs, others = _sort(faults)
    if others:
        raise ValidationFailed(others)
    elements = document["jobs"]
    _refuse_many(len(elements), "/jobs")
    return _Elements(elements, of_jobs)


async def _read_in_groups(body: bytes) -> list[Any] | None:
    """The jobs of a body that has nothing else and in which nothing is wrong; None: read it at length.

    A body of 64 MiB would hold the loop for 150 ms. So it is cut between two jobs: where the part before a comma is by
    itself a list of JSON values, the comma stands between two elements, whatever comes after it.
    """
    head, tail = _HEAD.match(body), _TAIL.search(body, max(0, len(body) - _TAIL_BYTES))
    if head is None or tail is None:
        return None
    jobs: list[Any] = []
    begin, end = head.end(), tail.start()
    while begin < end:
        group, begin = _read_group(body, begin, end)
        # Two levels stand around each job.
        if group is None or any(second_look([[job]], b"[[%b]]" % orjson.dumps(job)) != [] for job in group):
            return None
        jobs += group
        await asyncio.sleep(0)
    return jobs


def _read_group(body: bytes, begin: int, end: int) -> tuple[list[Any] | None, int]:
    """The jobs of about _GROUP_BYTES, and where the next group begins. None where no cut was found."""
    place = begin + _GROUP_BYTES
    for _ in range(_CUTS_TRIED):
        cut = _BETWEEN.search(body, place, end)
        stop = end if cut is None else cut.start() + 1
        try:
            group: list[Any] = orjson.loads(b"[%b]" % body[begin:stop])
        except orjson.JSONDecodeError:
            if cut is None:
                break
            place = cut.start() + 1  # within a job, or within a text
        else:
            return group, end if cut is None else cut.end()
    return None, begin


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
