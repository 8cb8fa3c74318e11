"""A TCP proxy between ringcron and its servers, that cuts, delays and swallows. A program of its own.

Of a PostgreSQL connection it understands as much as is needed to know a commit: where a group of messages ends (Sync,
Query), whether it writes, and when the server is ready again. It cuts

    before   the group never reaches the server: nothing is committed
    after    the server has answered, and the answer is swallowed: it is committed, and the client does not know

Invariant: what it does not cut it passes on unchanged and in order. A swallowed direction is held back, not lost, and
delivered when it is opened again, as TCP would.

Run as `python -m loadtest.chaos.proxy CONTROL_PORT ROUTES`, the routes as JSON. On the control port each line is a
JSON command and is answered by a line: the counters so far.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

_STARTUP_REQUESTS: Final = frozenset({80877103, 80877104})
"""SSLRequest, GSSENCRequest: one byte is the answer, and the startup message comes after it."""
_WRITES: Final = re.compile(rb"\b(insert|update|delete|merge)\b", re.IGNORECASE)
_COMMIT: Final = re.compile(rb"\s*commit\b", re.IGNORECASE)
_IDLE: Final = b"I"
CHUNK: Final = 65536


@dataclass(kw_only=True)
class Route:
    """One listening port and where it leads, both at `address`. What it does to connections may change at any time."""

    name: str
    address: str
    listen: int
    to: int
    postgres: bool
    cut_before: float = 0.0
    cut_after: float = 0.0
    delay_share: float = 0.0
    delay_seconds: float = 0.0
    up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set: what the client sends is passed on."""
    down: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.up.set()
        self.down.set()


class Statements:
    """What a PostgreSQL client sends, in groups that end where the server must answer. `feed` gives (bytes, commits):
    whether executing the group commits a write, provided that no transaction is open."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._group = bytearray()
        self._starting = True
        self._prepared: dict[bytes, bool] = {}
        self._writes = False
        self._commits = False

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool, bool]]:
        """Each complete group: its bytes, whether it writes, whether it is a COMMIT."""
        self._buffer += data
        while (message := self._next()) is not None:
            kind, body = message
            if kind is None:
                yield bytes(body), False, False
                continue
            self._group += body
            self._note(kind, bytes(body[5:]))
            if kind in (b"S", b"Q", b"X", b"p", b"c", b"f", b"d"):
                yield bytes(self._group), self._writes, self._commits
                self._group.clear()
                self._writes = self._commits = False

    def _next(self) -> tuple[bytes | None, bytearray] | None:
        offset = 0 if self._starting else 1
        if len(self._buffer) < offset + 4:
            return None
        (length,) = struct.unpack_from("!I", self._buffer, offset)
        if len(self._buffer) < offset + length:
            return None
        message = self._buffer[: offset + length]
        del self._buffer[: offset + length]
        if self._starting:
            (code,) = struct.unpack_from("!I", message, 4)
            self._starting = code in _STARTUP_REQUESTS
            return None, message
        return bytes(message[:1]), message

    def _note(self, kind: bytes, body: bytes) -> None:
        if kind == b"Q":
            self._see(body)
        elif kind == b"P":
            name, _, text = body.partition(b"\0")
            self._prepared[name] = bool(_WRITES.search(text)) and not _COMMIT.match(text)
            self._commits |= bool(_COMMIT.match(text))
        elif kind == b"B":
            _, _, rest = body.partition(b"\0")
            self._writes |= self._prepared.get(rest.partition(b"\0")[0], False)

    def _see(self, text: bytes) -> None:
        self._commits |= bool(_COMMIT.match(text))
        self._writes |= bool(_WRITES.search(text))


class Answers:
    """What a PostgreSQL server sends: finds where it is ready again, and in which state."""

    def __init__(self) -> None:
        self.state = _IDLE
        self.ready = 0
        """How often it was ready."""
        self.raw = 0
        """Single bytes to come: answers to startup requests."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data
        while self._buffer:
            if self.raw:
                del self._buffer[0]
                self.raw -= 1
                continue
            if len(self._buffer) < 5:
                return
            (length,) = struct.unpack_from("!I", self._buffer, 1)
            if len(self._buffer) < 1 + length:
                return
            if self._buffer[:1] == b"Z":
                self.state = bytes(self._buffer[5:6])
                self.ready += 1
            del self._buffer[: 1 + length]


class Proxy:
    """All routes."""

    def __init__(self, routes: list[Route]) -> None:
        self._routes = routes
        self._counts: Counter[str] = Counter()
        self._open: set[asyncio.StreamWriter] = set()

    async def run(self, control_port: int) -> None:
        servers = [
            await asyncio.start_server(partial(self._serve, route), route.address, route.listen)
            for route in self._routes
        ]
        servers.append(await asyncio.start_server(self._control, "127.0.0.1", control_port))
        await asyncio.gather(*(server.serve_forever() for server in servers))

    async def _control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            self._obey(json.loads(line))
            writer.write(json.dumps(self._counts).encode() + b"\n")
            await writer.drain()
        writer.close()

    def _obey(self, command: dict[str, Any]) -> None:
        """`routes`: a beginning of their names; then `cut_before`, … as in Route, `up`, `down` true or false."""
        prefix = command.pop("routes", "")
        for route in self._routes:
            if not route.name.startswith(prefix):
                continue
            for name, value in command.items():
                if name in ("up", "down"):
                    event: asyncio.Event = getattr(route, name)
                    (event.set if value else event.clear)()
                else:
                    setattr(route, name, value)

    async def _serve(self, route: Route, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await route.up.wait()
        try:
            server_reader, server_writer = await asyncio.open_connection(route.address, route.to)
        except OSError:
            writer.transport.abort()
            return
        link = Link(route, self._counts, writer, server_writer)
        pumps = [
            asyncio.create_task(link.pass_up(reader)),
            asyncio.create_task(link.pass_down(server_reader)),
        ]
        with contextlib.suppress(OSError):
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for one in (writer, server_writer):
            if not link.cut:
                with contextlib.suppress(OSError, asyncio.TimeoutError):
                    async with asyncio.timeout(1):
                        await one.drain()
            one.transport.abort() if link.cut else one.close()


class Link:
    """One connection through a route."""

    def __init__(
        self, route: Route, counts: Counter[str], client: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        self.cut = False
        self._route = route
        self._counts = counts
        self._client = client
        self._server = server
        self._statements = Statements()
        self._answers = Answers()
        self._swallow_until: int | None = None
        self._sent = 0

    async def pass_up(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(CHUNK):
            await self._route.up.wait()
            if not self._route.postgres:
                self._server.write(data)
                await self._server.drain()
                continue
            for group, writes, commits in self._statements.feed(data):
                if not await self._pass_group(group, writes, commits):
                    return

    async def _pass_group(self, group: bytes, writes: bool, commits: bool) -> bool:
        """Whether the connection goes on."""
        if len(group) == 8 and struct.unpack("!I", group[4:])[0] in _STARTUP_REQUESTS:
            self._answers.raw += 1
        final = commits or (writes and self._answers.state == _IDLE)
        if final:
            self._counts["commits"] += 1
            if random.random() < self._route.delay_share:
                self._counts["delays"] += 1
                await asyncio.sleep(random.uniform(0, self._route.delay_seconds))
            if random.random() < self._route.cut_before:
                self._counts["cut before"] += 1
                self.cut = True
                return False
            if self._swallow_until is None and random.random() < self._route.cut_after:
                self._swallow_until = self._answers.ready + 1
        self._server.write(group)
        await self._server.drain()
        return True

    async def pass_down(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(CHUNK):
            await self._route.down.wait()
            if self._route.postgres:
                self._answers.feed(data)
                if self._swallow_until is not None:
                    if self._answers.ready >= self._swallow_until:
                        self._counts["cut after"] += 1
                        self.cut = True
                        return
                    continue
            self._client.write(data)
            await self._client.drain()


def main() -> None:
    port, routes = sys.argv[1:]
    asyncio.run(_run(int(port), json.loads(routes)))


async def _run(port: int, routes: list[dict[str, Any]]) -> None:
    await Proxy([Route(**route) for route in routes]).run(port)


if __name__ == "__main__":
    main()
