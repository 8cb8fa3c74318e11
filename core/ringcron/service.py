"""Run one program: log, metrics, signals, exit code.

    first SIGTERM or SIGINT     the drain event is set; the program winds up and returns
    second                      the process ends at once, exit code 128 + signal

Invariant: once the program itself has ended, the process is gone within WIND_UP_SECONDS, whatever a library left behind
(a thread, a task that does not hear that it is cancelled).

Exit codes: 0 the program ended as asked; 1 a fault; 2 the settings are wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import structlog
from prometheus_client import start_http_server

from ringcron import __version__, failpoints, logs, metrics
from ringcron.clock import SystemClock
from ringcron.errors import ConfigError
from ringcron.settings import CommonSettings

OK: Final = 0
FAULT: Final = 1
USAGE: Final = 2

WIND_UP_SECONDS: Final = 5.0

_log = structlog.get_logger(__name__)

Body = Callable[[asyncio.Event], Awaitable[int | None]]
"""A program: given the drain event, it runs until that is set (or until its work is over) and returns its exit code."""


def run(
    program: str,
    settings: CommonSettings,
    body: Body,
    *,
    name: str | None = None,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
) -> int:
    """Run `body` to its end and return the exit code for the process, which has nothing else to do.

    `name` stands on each line of the log. `metrics_port` None: the program serves its metrics itself, or not at all.
    """
    logs.configure(program=program, name=name, form=settings.log_format, level=settings.log_level, clock=SystemClock())
    metrics.keep_only(program)
    metrics.BUILD_INFO.labels(__version__).set(1)
    try:
        if fault := failpoints.refusal(os.environ, settings.database_url):
            raise ConfigError([fault])
        with _metrics(metrics_port, metrics_host):
            return asyncio.run(_until_drained(body))
    except ConfigError as error:
        for fault in error.faults:
            _log.error("the settings are wrong", fault=fault)
        return USAGE
    except Exception:
        _log.exception("the program failed")
        return FAULT


async def _until_drained(body: Body) -> int:
    drain = asyncio.Event()

    def asked_to_stop(sign: signal.Signals) -> None:
        if drain.is_set():
            os._exit(128 + sign)  # not sys.exit: whatever hangs in the drain would hang that too
        _log.info("draining", signal=sign.name)
        drain.set()

    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, asked_to_stop, sign)
    _log.info("started", version=__version__)
    code: int | None = FAULT
    try:
        code = await body(drain)
    finally:
        _leave_soon(code or OK)
    _log.info("ended", exit_code=code or OK)
    return code or OK


def _leave_soon(code: int) -> None:
    """End the process after WIND_UP_SECONDS, should it still be there."""
    last_resort = threading.Timer(WIND_UP_SECONDS, os._exit, (code,))
    last_resort.daemon = True
    last_resort.start()


@contextlib.contextmanager
def _metrics(port: int | None, host: str) -> Iterator[None]:
    if port is None:
        yield
        return
    try:
        server, thread = start_http_server(port, addr=host)
    except OSError as error:
        raise ConfigError([f"RINGCRON_METRICS_PORT: cannot listen on {host}:{port}: {error.strerror}"]) from error
    _log.info("metrics", address=f"http://{host}:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
