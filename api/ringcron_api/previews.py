"""POST /schedules/preview: the ticks of a schedule that is not stored."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from aiohttp import web

from ringcron.errors import NeverFires
from ringcron.instants import format_instant
from ringcron.schedule import Schedule
from ringcron_api.creation_schemas import PREVIEW_NAMES, PreviewSchedule
from ringcron_api.definitions import read_schedule
from ringcron_api.faults import Fault, ValidationFailed
from ringcron_api.keys import STORE
from ringcron_api.requests import json_answer, json_body, query_of
from ringcron_api.schemas import NoQuery, read

_SOME = 20
"""Ticks that are found so fast that nobody waits for them; more are looked for in a thread."""


async def preview_schedule(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    document, held_back = await json_body(request)
    preview, faults = read(PreviewSchedule, document, known=PREVIEW_NAMES, place="body")
    if held_back or faults or preview is None:
        raise ValidationFailed([*held_back, *faults])
    after = preview.after or await request.app[STORE].now()
    schedule, in_schedule = read_schedule(preview.schedule, after)
    if schedule is None:
        raise ValidationFailed(in_schedule)
    if preview.count <= _SOME:
        return json_answer(_answer(schedule, after, preview.count))
    return json_answer(await asyncio.to_thread(_answer, schedule, after, preview.count))


def _answer(schedule: Schedule, after: datetime, count: int) -> dict[str, Any]:
    count = count if schedule.max_runs is None else min(count, schedule.max_runs)
    try:
        ticks, marks = schedule.upcoming(after, count), schedule.marks(after, count)
    except NeverFires as fault:
        raise ValidationFailed([Fault(pointer="/schedule", code=fault.code, detail=str(fault))]) from None
    return {
        "nextRuns": [format_instant(tick) for tick in ticks],
        "marks": [{"at": format_instant(at), "mark": mark.value} for at, mark in marks],
    }
