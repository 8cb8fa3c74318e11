"""The worker's end of the guard (guard.py): starts it, tells it every deadline, and starts another when it dies.

Invariant: what the guard has to know is kept here, so that a new guard is told everything at once. Nothing here waits
for the guard: one that does not read its pipe is killed and replaced.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Final

import structlog

from ringcron.clock import Clock

PROGRAM: Final = Path(__file__).with_name("guard.py")
MARK_VARIABLE: Final = "RINGCRON_GUARDED"
QUICK_SECONDS: Final = 1.0
"""A guard that lives shorter than this has not really started."""
QUICK_DEATHS: Final = 3
RETRY_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 5.0

_log = structlog.get_logger(__name__)


class GuardLink:
    """`on_failure` is called when there is no guard and none can be started: nothing must run then."""

    def __init__(self, clock: Clock, on_failure: Callable[[], object]) -> None:
        self._clock = clock
        self._on_failure = on_failure
        self._groups: dict[int, float] = {}
        self._worker_deadline = inf
        self._pipe: int | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._up = asyncio.Event()
        self._mark = f"{MARK_VARIABLE}={os.getpid()}.{secrets.token_hex(8)}"

    @property
    def pid(self) -> int | None:
        """The guard's process, for tests and people."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the guard. OSError where that is not possible.

        Marks this process's environment: that is how programs are found which handlers here start by themselves.
        """
        os.environ[MARK_VARIABLE] = self._mark.partition("=")[2]
        await self._launch()
        self._keeper = asyncio.create_task(self._keep(), name="guard keeper")

    @property
    def up(self) -> bool:
        """Whether there is a guard at the moment."""
        return self._up.is_set()

    async def ready(self, seconds: float) -> bool:
        """Whether there is a guard, waiting at most so long for a new one."""
        if self.up:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._up.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """End the guard, and with it every group that is still watched."""
        os.environ.pop(MARK_VARIABLE, None)
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        self._send("part\n")
        self._up.clear()
        self._drop_pipe()
        if self._process is not None:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    def watch(self, group: int, deadline: float) -> None:
        """Kill the process group at `deadline` (elapsed seconds; inf: only when the worker dies; 0: now)."""
        if self._groups.get(group) != deadline:
            self._groups[group] = deadline
            self._send(f"watch {group} {deadline!r}\n")

    def forget(self, group: int) -> None:
        """The group is gone."""
        if self._groups.pop(group, None) is not None:
            self._send(f"forget {group}\n")

    def worker_deadline(self, deadline: float) -> None:
        """Kill the worker at `deadline`; inf: never."""
        self._worker_deadline = deadline
        self._send(f"worker {deadline!r}\n")

    def _send(self, text: str) -> None:
        if self._pipe is None:
            return  # the next guard is told everything
        try:
            written = os.write(self._pipe, text.encode())
        except BlockingIOError:
            written = 0
        except OSError:
            return  # it has died: the keeper is about to notice
        if written != len(text):
            _log.error("the guard does not read its pipe, it is replaced", guard=self.pid)
            if self._process is not None and self._process.returncode is None:
                self._process.kill()
            self._drop_pipe()

    async def _launch(self) -> None:
        reading, writing = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(PROGRAM), str(os.getpid()), self._mark,
                stdin=reading, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        os.set_blocking(writing, False)
        self._pipe = writing
        self._up.set()
        self.worker_deadline(self._worker_deadline)
        for group, deadline in self._groups.items():
            self._send(f"watch {group} {deadline!r}\n")

    async def _keep(self) -> None:
        quick_deaths = 0
        while True:
            began = self._clock.elapsed()
            assert self._process is not None
            status = await self._process.wait()
            self._up.clear()
            self._drop_pipe()
            quick_deaths = quick_deaths + 1 if self._clock.elapsed() - began < QUICK_SECONDS else 0
            _log.error("the guard has died, another is started", guard=self._process.pid, status=status)
            if quick_deaths >= QUICK_DEATHS:
                self._on_failure()
                await asyncio.sleep(RETRY_SECONDS)
            await self._relaunch()

    async def _relaunch(self) -> None:
        while True:
            try:
                await self._launch()
                return
            except OSError as error:
                _log.error("no guard can be started", error=str(error))
                self._on_failure()
                await asyncio.sleep(RETRY_SECONDS)

    def _drop_pipe(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
