"""The sink: a program of its own that is told when a run begins and ends, and writes that down.

Invariant: it is the one witness that shares nothing with ringcron: no table, no lease, no clock but the machine's
elapsed one. A line is in the file before the caller has its answer. Each begin has a token of its own, so a run that
begins twice shows as two.

Run as `python -m loadtest.chaos.sink ADDRESS PORT FILE`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from ringcron.clock import SystemClock

ADDRESS_VARIABLE: Final = "LOADTEST_SINK"
"""Where handlers find the sink: host:port."""

_ANSWER: Final = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


class Told(NamedTuple):
    """One run as it was told. `begin` and `end` in seconds of the elapsed clock; `end` None: never heard of."""

    job: str
    generation: int
    scheduled_for: float
    attempt: int
    worker: str
    begin: float
    end: float | None


def read_told(path: Path) -> list[Told]:
    """Every run that the file knows of, in order of begin."""
    with path.open(encoding="utf-8") as lines:
        return told_from(map(json.loads, lines))


def told_from(lines: Iterable[dict[str, Any]]) -> list[Told]:
    """Begins and ends, paired by their tokens."""
    begun: dict[str, Told] = {}
    for line in lines:
        token = line["token"]
        if line["what"] == "begin":
            begun[token] = Told(
                line["job"],
                line["generation"],
                line["scheduledFor"],
                line["attempt"],
                line["worker"],
                line["at"],
                None,
            )
        elif token in begun:
            begun[token] = begun[token]._replace(end=line["at"])
    return sorted(begun.values(), key=lambda told: told.begin)


class Sink:
    """The server."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._clock = SystemClock()

    async def serve(self, address: str, port: int) -> None:
        server = await asyncio.start_server(self._answer, address, port, backlog=512)
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            )
            document = json.loads(await reader.readexactly(length))
            document["at"] = self._clock.elapsed()
            self._file.write(json.dumps(document) + "\n")
            self._file.flush()
            writer.write(_ANSWER)
            await writer.drain()
        writer.close()


def main() -> None:
    address, port, path = sys.argv[1:]
    with open(path, "a", encoding="utf-8") as file:
        asyncio.run(Sink(file).serve(address, int(port)))


if __name__ == "__main__":
    main()
