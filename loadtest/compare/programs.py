"""The programs of peers and of the limit, which all speak `loadtest.peers.protocol`."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loadtest.compare.contestants import CHECKOUT, READY_SECONDS, Broken, Site
from loadtest.peers.protocol import READY, Order
from ringcron.clock import SystemClock
from ringcron.local.processes import launch, tail

LOOK_SECONDS: Final = 0.02
RUN_SECONDS: Final = 600.0
"""Longest that making a schema or creating jobs may take."""


class ProgramCrew:
    """Workers that are `program work`."""

    def __init__(self, program: Sequence[str | Path], site: Site, *, workers: int, work: str = "work") -> None:
        """`program` is its command line; `work` the word that makes it a worker. Raises Broken."""
        self._program = program
        self._site = site
        self.workers: list[subprocess.Popen[bytes]] = []
        self._logs = [site.folder / f"worker-{number}.log" for number in range(1, workers + 1)]
        for log in self._logs:
            self.workers.append(launch([*program, work], environment=site.environment(), folder=CHECKOUT, log=log))
        try:
            self._await_ready()
        except Broken:
            self.close()
            raise

    def enqueue(self, order: Order) -> float:
        said = run_program(self._program, self._site, "enqueue", str(order.jobs), repr(order.at), repr(order.spacing))
        return float(json.loads(said.splitlines()[-1])["seconds"])

    def check(self) -> None:
        for process, log in zip(self.workers, self._logs, strict=True):
            if process.poll() is not None:
                raise Broken(f"a worker has ended, exit code {process.returncode}:\n{tail(log)}")

    def close(self) -> None:
        for process in self.workers:
            process.kill()
        for process in self.workers:
            process.wait()

    def _await_ready(self) -> None:
        clock = SystemClock()
        deadline = clock.elapsed() + READY_SECONDS
        while not all(_is_ready(log) for log in self._logs):
            self.check()
            if clock.elapsed() > deadline:
                raise Broken(f"the workers are not ready after {READY_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)


def run_program(program: Sequence[str | Path], site: Site, *arguments: str) -> str:
    """Run a program to its end; what it printed. Raises Broken with the end of what it said."""
    try:
        done = subprocess.run(
            [*map(str, program), *arguments],
            env=site.environment(),
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise Broken(f"`{arguments[0]}` has not ended after {RUN_SECONDS:.0f} s") from None
    if done.returncode != 0:
        raise Broken(f"`{arguments[0]}` failed: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def _is_ready(log: Path) -> bool:
    try:
        return READY in log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return False
