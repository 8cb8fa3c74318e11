"""Failpoints: nothing unless asked for, and refused beside a database that is not on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ringcron.failpoints import POINTS, VARIABLE, refusal

HERE = "postgresql://ringcron:secret@127.0.0.1:5432/ringcron"
AWAY = "postgresql://ringcron:secret@db.example.com/ringcron"


@pytest.mark.parametrize(
    ("environment", "url", "refused"),
    [({}, AWAY, False), ({VARIABLE: ""}, AWAY, False), ({VARIABLE: "leader.looked"}, HERE, False)]
    + [({VARIABLE: point}, AWAY, True) for point in POINTS],
)
def test_failpoints_are_for_servers_of_this_machine(environment: dict[str, str], url: str, refused: bool) -> None:
    why = refusal(environment, url)
    assert (why is not None) is refused
    assert "secret" not in (why or "")


@pytest.mark.parametrize(("armed", "ends"), [("", False), ("leader.planned", False), ("leader.looked", True)])
def test_a_program_ends_at_the_point_that_it_was_told(armed: str, ends: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from ringcron import failpoints; failpoints.reach('leader.looked')"],
        env={**os.environ, VARIABLE: armed},
        check=False,
    )
    assert done.returncode == (-signal.SIGKILL if ends else 0)
