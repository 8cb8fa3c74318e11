"""A small disk of PostgreSQL's own: a tmpfs that can be filled. Needs root, and a kernel that lets it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

SIZE: Final = "700m"


def mounted(folder: Path) -> Path | None:
    """Make the folder and mount the disk there; None where this machine does not let us."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, check=False, capture_output=True)
    except OSError:
        return None
    return folder if done.returncode == 0 else None


def unmount(folder: Path) -> None:
    """Take it away, whoever still has a file open there."""
    subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)
