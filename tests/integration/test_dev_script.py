"""The script `./dev`, as far as it can be tried without making an environment anew."""

from __future__ import annotations

import subprocess
from pathlib import Path

DEV = Path(__file__).parents[2] / "dev"


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([DEV, *arguments], capture_output=True, text=True, check=False)


def test_help_names_every_command() -> None:
    done = dev("--help")
    assert done.returncode == 0
    for command in ("up", "test", "check", "setup"):
        assert f"./dev {command}" in done.stdout


def test_anything_else_is_wrong_usage() -> None:
    for arguments in ((), ("dance",)):
        done = dev(*arguments)
        assert done.returncode == 2
        assert "./dev up" in done.stderr
