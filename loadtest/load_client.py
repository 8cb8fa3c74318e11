"""Load on the API: wrk where this machine has it (compiled, next to free), else a client of our own.

Invariant: only answers of the expected status count; any other is a fault of the run. The client of our own is several
processes with one connection each, which send bytes made beforehand and look at the answers' status, no more.
"""

from __future__ import annotations

import multiprocessing
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from loadtest.api_call import ApiConnection
from loadtest.cluster.errors import ClusterError
from ringcron.clock import SystemClock

_RATE: Final = re.compile(r"(\d+) requests in ([\d.]+)(ms|s|m)")
_REFUSED: Final = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}


class Sent(NamedTuple):
    """What a load client did: requests answered as expected, others, over how many seconds."""

    accepted: int
    refused: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.accepted / self.seconds


class Request(NamedTuple):
    """What is sent over and over. `marker` stands in an answer once for each job that was stored."""

    url: str
    api_key: str | None
    path: str
    body: bytes
    expect: int
    marker: bytes | None = None


def wrk() -> str | None:
    """The program wrk, if this machine has it."""
    return shutil.which("wrk")


def send_by_wrk(request: Request, *, connections: int, seconds: float) -> Sent:
    """Send as fast as answers come, over so many connections, with one thread."""
    program = wrk()
    assert program is not None
    headers = ["Content-Type: application/json"]
    if request.api_key is not None:
        headers.append(f"Authorization: Bearer {request.api_key}")
    with tempfile.TemporaryDirectory(prefix="ringcron-loadtest-") as folder:
        script = Path(folder) / "post.lua"
        script.write_text(f'wrk.method = "POST"\nwrk.body = [==[{request.body.decode()}]==]\n', encoding="utf-8")
        words = [program, "-t1", f"-c{connections}", f"-d{seconds:.0f}s", "-s", str(script)]
        for header in headers:
            words += ["-H", header]
        done = subprocess.run([*words, request.url + request.path], capture_output=True, text=True, check=False)
    rate = _RATE.search(done.stdout)
    if rate is None:
        raise ClusterError(f"wrk did not measure anything: {(done.stdout + done.stderr).strip()}")
    refused = int(found[1]) if (found := _REFUSED.search(done.stdout)) else 0
    return Sent(int(rate[1]) - refused, refused, float(rate[2]) * _SECONDS[rate[3]])


def send(request: Request, *, connections: int, seconds: float) -> Sent:
    """The same by processes of our own. With `marker` what counts is jobs, else requests."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(connections) as pool:
        parts = pool.starmap(_send, [(request, seconds)] * connections)
    return Sent(
        sum(part.accepted for part in parts), sum(part.refused for part in parts), max(part.seconds for part in parts)
    )


def _send(request: Request, seconds: float) -> Sent:
    clock = SystemClock()
    accepted = refused = 0
    with ApiConnection(request.url, request.api_key) as connection:
        connection.send("GET", "/healthz")
        began = clock.elapsed()
        while clock.elapsed() - began < seconds:
            status, answer = connection.send("POST", request.path, request.body)
            if status != request.expect:
                refused += 1
            else:
                accepted += 1 if request.marker is None else answer.count(request.marker)
        return Sent(accepted, refused, clock.elapsed() - began)


def interleaved(variants: Sequence[str], repeat: int) -> list[str]:
    """Each variant `repeat` times, in turns, so that a slow spell of the machine falls on all of them."""
    return [variant for _ in range(repeat) for variant in variants]
