"""The stream of live parts (SSE): what changed, once a second.

Invariant: one producer for all streams of a process. It works while somebody listens, makes the parts of each view that
is watched once, and compresses them once. A listener that cannot keep up loses no truth: it gets the whole again. A
stream ends after LIFE_SECONDS, and with the session it was opened with; the browser opens another.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import structlog
from aiohttp import web

from ringcron import metrics
from ringcron.clock import Clock
from ringcron.errors import StoreUnavailable
from ringcron.instants import format_instant
from ringcron_api.dashboard.markup import Markup, join
from ringcron_api.dashboard.parts import PARTS, Parts
from ringcron_api.dashboard.picture import Painter, Picture
from ringcron_api.dashboard.session import session_of, set_cookie

PERIOD_SECONDS: Final = 1.0
LEAST_SECONDS: Final = 0.2
"""Between two looks, where another process is counting just now."""
LIFE_SECONDS: Final = 600.0
EVENT_STREAM: Final = "text/event-stream"
RETRY_MILLISECONDS: Final = 2000
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

_log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class Listener:
    """One stream. `box` holds the event that it has not sent yet."""

    view: str
    box: asyncio.Queue[Event | None] = field(default_factory=lambda: asyncio.Queue(maxsize=1))
    whole: bool = True
    """Whether it needs everything: it is new, or has missed something."""


class Event:
    """The text of an event, and its gzip blocks, which any stream may append to its own."""

    def __init__(self, name: str, value: Any) -> None:
        self.text = b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(value))
        self._blocks: bytes | None = None

    @property
    def blocks(self) -> bytes:
        if self._blocks is None:
            packer = zlib.compressobj(6, zlib.DEFLATED, -15)
            self._blocks = packer.compress(self.text) + packer.flush(zlib.Z_SYNC_FLUSH)
        return self._blocks


class Stream:
    """The producer and the listeners of one process."""

    def __init__(self, painter: Painter, clock: Clock) -> None:
        self._painter = painter
        self._clock = clock
        self._listeners: set[Listener] = set()
        self._before: dict[str, Parts] = {}
        self._producer: asyncio.Task[None] | None = None
        self._closed = False
        self.produced = 0
        """Pictures that were made into events."""

    def listen(self, view: str) -> Listener:
        """A new listener; the first one wakes the producer."""
        listener = Listener(view)
        if self._closed:
            listener.box.put_nowait(None)
            return listener
        self._listeners.add(listener)
        if self._producer is None or self._producer.done():
            self._producer = asyncio.create_task(self._produce())
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    async def close(self) -> None:
        """End every stream."""
        self._closed = True
        if self._producer is not None:
            self._producer.cancel()
            await asyncio.gather(self._producer, return_exceptions=True)
        for listener in self._listeners:
            if listener.box.full():
                listener.box.get_nowait()
            listener.box.put_nowait(None)

    async def _produce(self) -> None:
        while self._listeners:
            pause = PERIOD_SECONDS
            try:
                picture = await self._painter.picture()
                self._send(picture)
                self.produced += 1
                # Just after the count is a second old, when it is counted again, by whoever is first.
                age = picture.snapshot.age_seconds + self._clock.elapsed() - picture.read_at
                pause = max(LEAST_SECONDS, PERIOD_SECONDS + 0.02 - age)
            except StoreUnavailable as error:
                self._send_trouble("database away", str(error))
            except Exception:
                _log.exception("the dashboard's stream could not be made")
                self._send_trouble("the API failed", "its log says more")
            await asyncio.sleep(pause)
        self._before.clear()

    def _send(self, picture: Picture) -> None:
        for view in {listener.view for listener in self._listeners}:
            parts = PARTS[view](picture)
            before = self._before.get(view, {})
            self._before[view] = parts
            head = {"takenAt": format_instant(picture.snapshot.taken_at), "level": picture.verdict.level.value}
            changed = Event("picture", {**head, **_changes(before, parts)})
            whole: Event | None = None
            for listener in self._listeners:
                if listener.view != view:
                    continue
                if listener.box.full():
                    listener.box.get_nowait()
                    listener.whole = True
                if listener.whole:
                    whole = whole or Event("picture", {**head, **_changes({}, parts)})
                listener.box.put_nowait(whole if listener.whole else changed)
                listener.whole = False

    def _send_trouble(self, word: str, reason: str) -> None:
        _log.warning("the dashboard's stream has nothing to show", reason=reason)
        event = Event("trouble", {"word": word})
        for listener in self._listeners:
            if not listener.box.full():
                listener.box.put_nowait(event)
                listener.whole = True


def _changes(before: Mapping[str, Markup | dict[str, Markup]], parts: Parts) -> dict[str, Any]:
    """What is other than before: whole elements, and single rows where the table has the same ones."""
    elements: dict[str, str] = {}
    rows: dict[str, str] = {}
    for name, part in parts.items():
        old = before.get(name)
        if part == old:
            continue
        if not isinstance(part, dict):
            elements[name] = part
        elif isinstance(old, dict) and old.keys() == part.keys():
            rows |= {key: made for key, made in part.items() if made != old[key]}
        else:
            elements[name] = join(part.values())
    return {"elements": elements, "rows": rows}


async def serve(request: web.Request, stream: Stream, view: str, clock: Clock, still_lives: Any) -> web.StreamResponse:
    """Answer with events until the caller leaves, its session ends or LIFE_SECONDS are over."""
    packed = "gzip" in request.headers.get("Accept-Encoding", "")
    headers = {"Content-Type": EVENT_STREAM, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if packed:
        headers["Content-Encoding"] = "gzip"
    response = web.StreamResponse(headers=headers)
    session = session_of(request)
    if session is not None:
        set_cookie(request, response, session)  # a page that is looked at is a session in use
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    if packed:
        await response.write(_GZIP_HEAD)
    listener = stream.listen(view)
    ends_at = clock.elapsed() + LIFE_SECONDS
    first = Event("hello", {"retry": RETRY_MILLISECONDS})
    first.text = b"retry: %d\n" % RETRY_MILLISECONDS + first.text
    metrics.EVENT_STREAMS.inc()
    try:
        with contextlib.suppress(ConnectionError):
            event: Event | None = first
            while event is not None and clock.elapsed() < ends_at and await still_lives():
                await response.write(event.blocks if packed else event.text)
                event = await listener.box.get()
    finally:
        stream.leave(listener)
        metrics.EVENT_STREAMS.dec()
    return response
