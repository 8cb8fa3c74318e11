"""`command`: runs a program; exit status 0 succeeds.

A plain handler, so it runs in a handler process. The program stays in that process's group and session, and what a run
leaves behind ends the process with its whole session: a command is killed by what kills its handler process, whoever
dies and however. The program does not see the settings of the worker (RINGCRON_*), but who its run is:
RINGCRON_JOB_ID, _RUN_ID, _SCHEDULED_FOR, _ATTEMPT, _LEASE_GENERATION.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import IO, Any, Final

import orjson

from ringcron.handlers import ERROR_LIMIT, RESULT_LIMIT, Fail, HandlerRegistry, RunContext
from ringcron_shard_worker.builtin import BuiltinSettings
from ringcron_shard_worker.builtin.payload import Payload

FIELDS: Final = ("argv", "shell", "env", "cwd", "stdin")
OUTPUT_LIMIT: Final = 8 * 1024
"""Bytes of the end of the combined output that are kept."""
LOOK_SECONDS: Final = 0.1
"""How often a command is looked at that says nothing: has it been asked to stop, has it ended?"""
_SHELL: Final = "/bin/sh"


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """What to start."""

    argv: list[str]
    env: Mapping[str, str]
    cwd: str | None
    stdin: str | None


def command(ctx: RunContext, payload: Any) -> dict[str, Any]:
    """Payload {argv | shell, env?, cwd?, stdin?}; returns {exitStatus, output}."""
    wanted = read_command(payload)
    with tempfile.TemporaryFile() as stdin:
        stdin.write((wanted.stdin or "").encode(errors="replace"))
        stdin.seek(0)
        process = _start(wanted, _environment(ctx, wanted.env), stdin)
        with process:
            output = _output(process, ctx)
            status = process.wait()
    if status == 0:
        return fitting(output)
    how = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
    said = output.decode(errors="replace").strip()
    room = ERROR_LIMIT - len(how) - 2
    raise Fail(f"{how}: {said[-room:]}" if said else how)


def read_command(payload: Any) -> Command:
    """Raises Fail, dead at once, with every fault of the payload."""
    fields = Payload(payload, fields=FIELDS)
    argv, shell = fields.texts("argv"), fields.text("shell")
    if (fields.value("argv") is None) == (fields.value("shell") is None):
        fields.fault("", "must have either argv or shell")
    env = fields.mapping("env") or {}
    for name in env:
        if not name or "=" in name:
            fields.fault(f"env.{name}", "is not the name of a variable")
    cwd, stdin = fields.text("cwd"), fields.text("stdin")
    fields.check()
    if argv is None:
        argv = [env.get("SHELL") or _SHELL, "-c", str(shell)]
    return Command(argv=argv, env=env, cwd=cwd, stdin=stdin)


def fitting(output: bytes) -> dict[str, Any]:
    """The result, with as much of the end of the output as a result may have."""
    text = output.decode(errors="replace").replace("\0", "\ufffd")
    while True:
        result = {"exitStatus": 0, "output": text}
        over = len(orjson.dumps(result)) - RESULT_LIMIT
        if over <= 0:
            return result
        text = text[max(1, over // 6) :]  # JSON makes at most six bytes of a character of one


def _environment(ctx: RunContext, given: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RINGCRON_")}
    return {
        **inherited,
        **given,
        "RINGCRON_JOB_ID": str(ctx.job_id),
        "RINGCRON_RUN_ID": ctx.run_id,
        "RINGCRON_SCHEDULED_FOR": ctx.scheduled_for.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "RINGCRON_ATTEMPT": str(ctx.attempt),
        "RINGCRON_LEASE_GENERATION": str(ctx.lease_generation),
        **({} if ctx.traceparent is None else {"TRACEPARENT": ctx.traceparent}),
        **({} if ctx.tracestate is None else {"TRACESTATE": ctx.tracestate}),
    }


def _start(wanted: Command, env: Mapping[str, str], stdin: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            wanted.argv,
            env=env,
            cwd=wanted.cwd,
            stdin=subprocess.DEVNULL if wanted.stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except (OSError, ValueError) as error:
        raise Fail(f"cannot start {wanted.argv[0]!r}: {error}") from None


def _output(process: subprocess.Popen[bytes], ctx: RunContext) -> bytes:
    """The end of what the command writes, once it has ended. Asked to stop, the command is told to."""
    assert process.stdout is not None
    tail = b""
    told = False
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            if not selector.get_map():
                if ended or _ended_within(process, LOOK_SECONDS):
                    return tail
            elif selector.select(0 if ended else LOOK_SECONDS):
                chunk = os.read(process.stdout.fileno(), 65536)
                tail = (tail + chunk)[-OUTPUT_LIMIT:]
                if not chunk:
                    selector.unregister(process.stdout)
            elif ended:
                return tail  # something that it left behind holds the pipe open
            if ctx.cancelled and not told:
                told = True
                _terminate(process)


def _ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the command and what it has started; the handler process leads the group and takes no notice of it."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGTERM)
    else:
        process.terminate()


def register(registry: HandlerRegistry, _: BuiltinSettings) -> None:
    registry.register("command", command)
