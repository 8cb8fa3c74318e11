"""Chaos runs cut workers off in network namespaces: what is cut off hears nothing, and nothing is left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from loadtest.chaos.namespaces import PREFIX, Namespaces, sweep, tool
from ringcron.local.errors import NotAvailable

_ASK = (
    "import socket, sys; link = socket.create_connection((sys.argv[1], int(sys.argv[2])), 60);"
    "link.sendall(b'x'); sys.exit(link.recv(1) != b'y')"
)


def left_of(pid: int) -> list[str]:
    """The namespaces and interfaces of that run."""
    namespaces = [one.name for one in Path("/run/netns").glob(f"{PREFIX}{pid}-*")]
    return namespaces + [one.name for one in Path("/sys/class/net").glob(f"rc{pid}[bv]*")]


def test_who_is_cut_off_hears_nothing_until_it_is_healed() -> None:
    try:
        with Namespaces(["a", "b"]) as made, socket.create_server((made.address, 0)) as server:
            server.settimeout(60)
            port = server.getsockname()[1]
            asking = subprocess.Popen([*made.within("a"), sys.executable, "-c", _ASK, made.address, str(port)])
            link, _ = server.accept()
            assert link.recv(1) == b"x"
            made.cut("a", [port], up=True, down=False)
            link.sendall(b"y")
            with pytest.raises(subprocess.TimeoutExpired):
                asking.wait(0.5)
            made.heal()
            assert asking.wait(60) == 0
            assert made.dropped >= 1
            link.close()
    except NotAvailable as error:
        pytest.skip(f"no network namespaces: {error}")
    assert left_of(os.getpid()) == []


def test_what_a_killed_run_left_behind_is_swept_away() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    try:
        with Namespaces(["a"]):
            ip = tool("ip", "iproute2")
            ip.run("netns", "add", f"{PREFIX}{gone.pid}-worker-1")
            ip.run("link", "add", f"rc{gone.pid}b", "type", "bridge")
            assert len(left_of(gone.pid)) == 2
            sweep(ip)
            assert left_of(gone.pid) == []
            assert len(left_of(os.getpid())) == 3
    except NotAvailable as error:
        pytest.skip(f"no network namespaces: {error}")
