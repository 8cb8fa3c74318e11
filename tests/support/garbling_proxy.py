"""A ZooKeeper server that once answers what was not asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def garbling_proxy(target: str) -> AsyncIterator[str]:
    """Passes everything on, but for the first connection's answers after the handshake: they get another number."""
    host, port = target.rsplit(":", 1)
    connections: list[asyncio.Task[None]] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, garble: bool) -> None:
        frames = 0
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    length = await reader.readexactly(4)
                    frame = bytearray(await reader.readexactly(int.from_bytes(length, "big")))
                    frames += 1
                    if garble and frames > 1:
                        frame[0:4] = (77).to_bytes(4, "big")
                    writer.write(length + frame)
                    await writer.drain()
        finally:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, garble: bool) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
        except BaseException:
            writer.close()
            raise
        await asyncio.gather(pump(reader, upstream_writer, garble=False), pump(upstream_reader, writer, garble=garble))

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.ensure_future(connected(reader, writer, garble=not connections)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        server.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)  # the loop closes what was closed
