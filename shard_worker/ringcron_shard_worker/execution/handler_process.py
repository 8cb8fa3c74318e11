"""The worker's end of one handler process (package handler_process).

Invariant: from before it runs anything until it is gone, its process group is known to the guard; only the guard kills
it, with all that is left of its session.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from math import inf
from typing import Final

from ringcron_shard_worker.execution.guard_link import GuardLink
from ringcron_shard_worker.handler_process.frames import HEADER, Message, body_length, pack, unpack
from ringcron_shard_worker.handler_process.outcome import Ended, clean_text

PROGRAM: Final = "ringcron_shard_worker.handler_process"
READY_SECONDS: Final = 60.0
END_SECONDS: Final = 2.0
"""How long an idle process may take to end by itself."""
LAST_WORDS_SECONDS: Final = 0.5
"""How long an answer is waited for once the process is gone: it may lie in the socket."""


class HandlerProcessUnready(Exception):
    """The handler process could not be started, or could not import its handlers."""


class HandlerProcess:
    """One process, ready to run one handler at a time."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        guard: GuardLink,
    ) -> None:
        self._process = process
        self._reader, self._writer = streams
        self._guard = guard
        self._gone = asyncio.create_task(self._bury(), name=f"handler process {process.pid}")

    @classmethod
    async def start(cls, hello: Message, guard: GuardLink) -> HandlerProcess:
        """Start one and wait until it has imported its handlers. HandlerProcessUnready where that fails."""
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise HandlerProcessUnready(f"a handler process cannot be started: {error}") from error
        with theirs:
            streams = await asyncio.open_connection(sock=ours)
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", PROGRAM, str(os.getpid()), str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL, pass_fds=(theirs.fileno(),), start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                streams[1].close()
                raise HandlerProcessUnready(f"a handler process cannot be started: {error}") from error
        guard.watch(process.pid, inf)
        started = cls(process, streams, guard)
        try:
            async with asyncio.timeout(READY_SECONDS):
                await started._introduce(hello)
        except BaseException as error:
            await started.end(kill=True)
            if isinstance(error, TimeoutError):
                raise HandlerProcessUnready(
                    f"a handler process was not ready within {READY_SECONDS:g} s: do its modules import?"
                ) from None
            raise
        return started

    async def _introduce(self, hello: Message) -> None:
        self._send({"type": "hello"} | hello)
        answer = await self._answer()
        if answer is None:
            raise HandlerProcessUnready(f"{await self._obituary()} before it was ready")
        if answer["type"] != "ready":
            raise HandlerProcessUnready(clean_text(f"a handler process cannot import its handlers: {answer['error']}"))

    @property
    def pid(self) -> int:
        """Also the number of its group and of its session."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can take a run."""
        return not self._gone.done() and not self._reader.at_eof()

    async def begin(self, request: Message) -> bool:
        """Hand over a run; False where the process went away before it began."""
        self._send({"type": "run"} | request)
        return await self._answer() is not None

    async def ended(self) -> Ended:
        """Wait for the end of the run; `died` where the process went away under it."""
        answer = await self._answer()
        if answer is None:
            return Ended(error=await self._obituary(), died=True)
        del answer["type"]
        return Ended.from_message(answer)

    def ask_to_stop(self, run_id: str) -> None:
        """Tell the handler."""
        self._send({"type": "stop", "run_id": run_id})

    def limit(self, at: float) -> None:
        """The guard kills it at this instant (elapsed seconds); inf: when the worker dies; 0: now."""
        if not self._gone.done():
            self._guard.watch(self.pid, at)

    async def end(self, *, kill: bool) -> None:
        """End it and wait until it is gone: by closing its socket, or with its whole session."""
        self._writer.close()
        if not kill:
            await asyncio.wait((self._gone,), timeout=END_SECONDS)
        self.limit(0)
        await asyncio.shield(self._gone)
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            pass  # it went first

    def kill_without_guard(self) -> None:
        """For when there is no guard."""
        if self._process.returncode is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it is just going

    async def _obituary(self) -> str:
        """How it ended, once it has: it may have closed the socket and live."""
        self.limit(0)
        await asyncio.shield(self._gone)
        status = self._process.returncode
        if status is not None and status < 0:
            return f"the handler process was ended by signal {-status} ({signal.Signals(-status).name})"
        return f"the handler process ended with exit status {status}"

    async def _bury(self) -> None:
        await self._process.wait()
        self._guard.forget(self.pid)

    def _send(self, message: Message) -> None:
        if not self._writer.is_closing():
            self._writer.write(pack(message))

    async def _answer(self) -> Message | None:
        """The next message; None when the process has ended or closed the socket."""
        reading = asyncio.create_task(self._read())
        try:
            await asyncio.wait((reading, self._gone), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():  # a copy of the process may hold the socket open
                await asyncio.wait((reading,), timeout=LAST_WORDS_SECONDS)
            return reading.result() if reading.done() else None
        finally:
            reading.cancel()

    async def _read(self) -> Message | None:
        try:
            header = await self._reader.readexactly(HEADER.size)
            return unpack(await self._reader.readexactly(body_length(header)))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
