"""Start and end child processes so that none is left behind.

Invariant: on Linux every child has a parent-death signal from before its program starts, so that a SIGKILL of the
parent ends it too. The kernel ties that signal to the *thread* that started the child: call `launch` from a thread
that lives as long as the process does (the main one). Each child has a session of its own, so that a Ctrl-C on the
terminal reaches the parent alone, which then ends its children in order.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ringcron.clock import SystemClock
from ringcron.local.errors import LocalServerError

POLL_SECONDS: Final = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """The user that a child is to run as."""

    uid: int
    gid: int


def unprivileged() -> Identity | None:
    """Whom to become for a program that refuses to run as root; None where we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Identity(uid=entry.pw_uid, gid=entry.pw_gid)
    raise LocalServerError("PostgreSQL refuses to run as root, and this machine has neither a user postgres nor nobody")


def launch(
    arguments: Sequence[str | Path],
    *,
    parent_death_signal: signal.Signals = signal.SIGKILL,
    identity: Identity | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    log: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program with no standard input; what it prints is appended to `log`.

    `environment` None: ours. The pid is the program's own: what stands before it only replaces itself by it.
    """
    prefix, become = _dropping(identity, parent_death_signal)
    output = subprocess.DEVNULL if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(
            [*prefix, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=folder,
            env=None if environment is None else dict(environment),
            user=None if become is None else become.uid,
            group=None if become is None else become.gid,
            extra_groups=None if become is None else [],
        )
    finally:
        if output != subprocess.DEVNULL:
            os.close(output)


def run_as(
    identity: Identity | None,
    arguments: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    input_text: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end as `identity`, capturing what it prints; the caller judges the exit code."""
    prefix, become = _dropping(identity, signal.SIGKILL)
    return subprocess.run(
        [*prefix, *map(str, arguments)],
        input=input_text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
        cwd=folder,
        env=None if environment is None else dict(environment),
        user=None if become is None else become.uid,
        group=None if become is None else become.gid,
        extra_groups=None if become is None else [],
    )


def _dropping(identity: Identity | None, parent_death_signal: signal.Signals) -> tuple[list[str], Identity | None]:
    """The words to put before a program, and whom subprocess itself must become where those words cannot see to it."""
    setpriv = _setpriv()
    if setpriv is None:
        return [], identity
    words = [setpriv, "--pdeathsig", parent_death_signal.name.removeprefix("SIG")]
    if identity is not None:
        words += ["--reuid", str(identity.uid), "--regid", str(identity.gid), "--clear-groups"]
    return [*words, "--"], None


def _setpriv() -> str | None:
    """util-linux's setpriv. BusyBox has one of that name that knows no parent-death signal; there, none is set."""
    found = shutil.which("setpriv", path=os.environ.get("PATH", "") + ":/usr/bin:/bin")
    return None if found is None or os.path.basename(os.path.realpath(found)) == "busybox" else found


def end(process: subprocess.Popen[bytes], sign: signal.Signals, *, seconds: float) -> None:
    """Ask a child to end with `sign`, wait, and kill it when it has not ended after `seconds`. Frozen ones too."""
    if process.poll() is not None:
        return
    process.send_signal(sign)
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], *, seconds: float, otherwise: Callable[[], str]) -> None:
    """Block until `condition()` holds. Raises LocalServerError with `otherwise()` after `seconds`."""
    clock = SystemClock()
    deadline = clock.elapsed() + seconds
    while not condition():
        if clock.elapsed() > deadline:
            raise LocalServerError(otherwise())
        time.sleep(POLL_SECONDS)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, for an error message."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"
