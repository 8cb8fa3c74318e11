"""A connection that is given up while it opens."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from ringcron.store.link import Link
from ringcron.store.opening import OpenedConnection


class MuteServer:
    """Accepts connections, reads, never answers."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.begun.set()
        while await reader.read(4096):
            pass
        self.ended.set()
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[MuteServer]:
    mute = MuteServer()
    listening = await asyncio.start_server(mute.serve, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        mute.url = f"postgresql://nobody@127.0.0.1:{port}/none?sslmode=disable"
        yield mute


@pytest.fixture(autouse=True)
def _no_garbage_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def _by_itself(url: str) -> None:
    await OpenedConnection.connect(url)


async def _by_a_link(url: str) -> None:
    async with Link(url, application_name="test").connection():
        pass


@pytest.mark.parametrize("use", [_by_itself, _by_a_link])
async def test_a_connect_that_is_cancelled_closes_its_socket(
    server: MuteServer, use: Callable[[str], Coroutine[Any, Any, None]]
) -> None:
    connecting = asyncio.create_task(use(server.url))
    async with asyncio.timeout(10):
        await server.begun.wait()
        connecting.cancel()
        await asyncio.wait([connecting])  # the task keeps what cancelled it, and with it the frames
        await server.ended.wait()
    assert connecting.cancelled()
