"""Keep child processes running: start them in order, start again what ends, stop them in reverse order.

Invariants: everything is started from the main thread (the parent-death signal is tied to it); a child that was told
to stop is never started again; when `stop` returns, no child runs.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ringcron.clock import Clock
from ringcron.local.errors import LocalServerError
from ringcron.local.processes import tail

FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 10.0
STEADY_SECONDS: Final = 30.0
"""A child that ran so long is started again without a pause that grew."""
LOOK_SECONDS: Final = 0.1


@dataclass(kw_only=True)
class Child:
    """One process to keep running. Children of a smaller `stage` are started before and stopped after."""

    role: str
    name: str
    stage: int
    spawn: Callable[[], subprocess.Popen[bytes]]
    log: Path
    is_ready: Callable[[], bool] = lambda: True
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL
    stop_seconds: float = 20.0
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    started_at: float = field(default=0.0, init=False)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid


class Supervisor:
    """Owns the children of this process, within one running event loop of the main thread."""

    def __init__(self, clock: Clock, *, say: Callable[[str], None], changed: Callable[[], None]) -> None:
        """`say` takes a sentence for people; `changed` is called when a child has been started again."""
        self._clock = clock
        self._say = say
        self._changed = changed
        self._keepers: list[asyncio.Task[None]] = []
        self._died = asyncio.Event()  # another one after each SIGCHLD
        self._watching = False
        self.children: list[Child] = []

    async def start(self, child: Child, *, seconds: float = 60.0) -> None:
        """Start a child and wait until it is ready. Raises LocalServerError with the end of its log."""
        self._watch()
        self._spawn(child)
        self.children.append(child)
        deadline = self._clock.elapsed() + seconds
        while not child.is_ready():
            self.check()
            if self._clock.elapsed() > deadline:
                raise LocalServerError(f"{child.name} is not ready after {seconds:.0f} s:\n{tail(child.log)}")
            await asyncio.sleep(LOOK_SECONDS)
        self.check()

    def check(self) -> None:
        """Raises LocalServerError with the end of its log when a child has ended."""
        for child in self.children:
            code = None if child.process is None else child.process.poll()
            if code is not None:
                raise LocalServerError(f"{child.name} {_ended(code)}:\n{tail(child.log)}")

    def keep(self) -> None:
        """From now on, start again what ends."""
        self._keepers += [asyncio.create_task(self._keep(child)) for child in self.children]

    async def stop(self) -> None:
        """Stop every child, stage by stage in reverse order; kill what takes longer than its own limit."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        for stage in sorted({child.stage for child in self.children}, reverse=True):
            await self._stop_stage([child for child in self.children if child.stage == stage])

    def kill(self) -> None:
        """Stop waiting: kill every child that is left, at once."""
        for child in self.children:
            if child.process is not None and child.process.poll() is None:
                child.process.send_signal(child.kill_signal)

    def _watch(self) -> None:
        """Have the kernel wake whoever waits for a child's end."""
        if self._watching:
            return
        self._watching = True

        def some_child_died() -> None:
            died, self._died = self._died, asyncio.Event()
            died.set()

        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, some_child_died)

    def _spawn(self, child: Child) -> None:
        child.process = child.spawn()
        child.started_at = self._clock.elapsed()

    async def _keep(self, child: Child) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            code = await self._ended(child)
            if self._clock.elapsed() - child.started_at > STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            self._say(f"{child.name} {_ended(code)}; it is started again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            try:
                self._spawn(child)
            except (LocalServerError, OSError) as error:
                self._say(f"{child.name} cannot be started: {error}")
                continue
            self._changed()

    async def _ended(self, child: Child) -> int:
        assert child.process is not None
        while (code := child.process.poll()) is None:
            await self._died.wait()
        return code

    async def _stop_stage(self, children: Sequence[Child]) -> None:
        for child in children:
            if child.process is not None and child.process.poll() is None:
                child.process.send_signal(child.stop_signal)
                child.process.send_signal(signal.SIGCONT)  # one that is paused would never hear of it
        await asyncio.gather(*(self._await_end(child) for child in children))

    async def _await_end(self, child: Child) -> None:
        if child.process is None:
            return
        try:
            async with asyncio.timeout(child.stop_seconds):
                await self._ended(child)
        except TimeoutError:
            self._say(f"{child.name} did not stop within {child.stop_seconds:g} s: killed")
            child.process.kill()
            await self._ended(child)


def _ended(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
