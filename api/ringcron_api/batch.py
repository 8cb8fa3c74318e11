"""POST /jobs/batch: many jobs in one call.

Invariant: every job of a batch that was read whole is stored or has its error in the answer, whether or not the caller
waits for it; with `atomic` all are stored or none. Jobs are read and stored in chunks: one is read while the one before
it is stored, and no step holds the loop for longer than a chunk's slice of it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson
from aiohttp import web

from ringcron.errors import RingcronError, StoreUnavailable
from ringcron.instants import format_instant
from ringcron.slots import slot_of
from ringcron.store.api import ApiStore
from ringcron.store.batching import BatchRefused
from ringcron.store.creating import Created, Creation, Outcome, Stored
from ringcron_api.batch_body import BatchBody, read_batch
from ringcron_api.bell import note_due
from ringcron_api.callers import trace_of
from ringcron_api.creation_schemas import CreateJobs
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.many_creations import CreationReader
from ringcron_api.operations import NDJSON
from ringcron_api.problems import Problem, problem_of, unforeseen
from ringcron_api.requests import is_within, query_of, store_of
from ringcron_api.strict_json import MalformedJson

CHUNK: Final = 2000
"""Jobs that are stored in one transaction, unless all are."""
_SLICE: Final = 100
"""Jobs that are read, or results that are written, in one go; then others are answered."""
BATCH_SECONDS: Final = 30.0
"""How long storing may take."""


Read = Creation | Problem | ValidationFailed | MalformedJson
"""A job as read, or why it cannot be stored."""


async def create_jobs(request: web.Request) -> web.Response:
    query = query_of(request, CreateJobs)
    batch = await read_batch(request)
    answer = _answer_whole if query.atomic else _answer_each
    if query.dry_run:
        return await store_of(request).rehearse(
            lambda within: answer(request, within, batch, one_transaction=True), seconds=BATCH_SECONDS
        )
    return await answer(request, store_of(request), batch, one_transaction=is_within(request))


async def _answer_whole(
    request: web.Request, store: ApiStore, batch: BatchBody, *, one_transaction: bool
) -> web.Response:
    read = await _read(CreationReader(await store.now(), trace_of(request)), batch, range(len(batch)))
    faults = [fault for index, one in enumerate(read) for fault in _faults(batch.pointer(index), one)]
    if faults:
        raise ValidationFailed(faults)
    jobs = _jobs(read)
    try:
        outcomes = await store.insert_jobs(jobs, whole=True)
    except BatchRefused as refused:
        raise ValidationFailed([_refusal(batch.pointer(index), error) for index, error in refused.errors]) from None
    return _response(batch, await _results(request, 0, read, outcomes), status=201, streamed=not one_transaction)


async def _answer_each(
    request: web.Request, store: ApiStore, batch: BatchBody, *, one_transaction: bool
) -> web.Response:
    reader = CreationReader(await store.now(), trace_of(request))
    # In one transaction all keys are locked at once, in their order: chunk by chunk two batches could deadlock. And no
    # job is read while others wait for these keys.
    size = max(1, len(batch)) if one_transaction else CHUNK
    begins = range(0, len(batch), size)
    chunks = [range(begin, min(begin + size, len(batch))) for begin in begins]
    results: list[dict[str, Any]] = []
    down: StoreUnavailable | None = None
    read = await _read(reader, batch, chunks[0] if chunks else range(0))
    for following in [*chunks[1:], range(0)]:
        storing = _store(store, _jobs(read), down)
        try:
            outcomes, next_read = await asyncio.gather(storing, _read(reader, batch, following))
        except StoreUnavailable as error:
            if one_transaction or not results:
                raise
            down = error
            outcomes, next_read = [error] * len(_jobs(read)), await _read(reader, batch, following)
        results += await _results(request, len(results), read, outcomes)
        read = next_read
    return _response(batch, results, status=207, streamed=not one_transaction)


async def _store(store: ApiStore, jobs: Sequence[Creation], down: StoreUnavailable | None) -> list[Outcome]:
    """Store a chunk; not once the store was `down`: what is left would wait as long again."""
    return await store.insert_jobs(jobs, whole=False) if down is None else [down] * len(jobs)


async def _read(reader: CreationReader, batch: BatchBody, indices: range) -> list[Read]:
    read: list[Read] = []
    for index in indices:
        try:
            document, held_back = batch.read(index)
            read.append(reader.read(document, held_back))
        except (Problem, ValidationFailed, MalformedJson) as error:
            read.append(error)
        if index % _SLICE == 0:
            await asyncio.sleep(0)
    return read


def _jobs(read: Sequence[Read]) -> list[Creation]:
    return [one for one in read if isinstance(one, Creation)]


async def _results(
    request: web.Request, first: int, read: Sequence[Read], outcomes: Sequence[Outcome]
) -> list[dict[str, Any]]:
    """What stands in the answer for these jobs, the first of which has the index `first`; `outcomes` are of those among
    them that could be read."""
    left = iter(outcomes)
    results = []
    for index, one in enumerate(read, first):
        outcome = next(left) if isinstance(one, Creation) else one
        results.append(_result(index, outcome))
        if isinstance(one, Creation) and isinstance(outcome, Stored) and outcome.next_run_at is not None:
            note_due(request, slot_of(outcome.job_id), outcome.next_run_at, one.created_at)
        if index % _SLICE == 0:
            await asyncio.sleep(0)
    return results


def _result(index: int, outcome: Outcome | Exception) -> dict[str, Any]:
    if not isinstance(outcome, Stored):
        problem = problem_of(outcome) or unforeseen()
        return {"index": index, "status": problem.status, "error": problem.document()}
    if outcome.what is Created.CREATED:
        return {"index": index, "status": 201, "jobId": outcome.job_id, "nextRunAt": outcome.next_run_at}
    due = None if outcome.next_run_at is None else format_instant(outcome.next_run_at)
    return {"index": index, "status": 200, "jobId": outcome.job_id, "nextRunAt": due}


def _faults(pointer: str, one: Read) -> list[Fault]:
    """What is wrong with the job at this place in the whole body."""
    match one:
        case Creation():
            return []
        case ValidationFailed():
            return [replace(fault, pointer=pointer + fault.pointer) for fault in one.faults]
        case MalformedJson():
            return [Fault(pointer=pointer, code="malformed-json", detail=str(one))]
        case Problem():
            return [Fault(pointer=pointer, code=one.code, detail=one.detail)]


def _refusal(pointer: str, error: RingcronError) -> Fault:
    problem = problem_of(error) or unforeseen()
    at = f"{pointer}/key" if problem.code == "key-exists" else pointer
    return Fault(pointer=at, code=problem.code, detail=problem.detail)


def _response(batch: BatchBody, results: list[dict[str, Any]], *, status: int, streamed: bool) -> web.Response:
    """The answer in the form of the body; `streamed` False: in one piece, so that it can be kept."""
    if batch.media_type != NDJSON:
        return web.Response(body=_dumps({"results": results}), status=status, content_type=batch.media_type)
    body = _lines(results) if streamed else b"".join(_dumps(result) + b"\n" for result in results)
    return web.Response(body=body, status=status, content_type=NDJSON)


async def _lines(results: Sequence[dict[str, Any]]) -> AsyncIterator[bytes]:
    for begin in range(0, len(results), _SLICE):
        yield b"".join(_dumps(result) + b"\n" for result in results[begin : begin + _SLICE])
        await asyncio.sleep(0)


def _dumps(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_UTC_Z)
