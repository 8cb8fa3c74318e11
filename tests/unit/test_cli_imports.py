"""What starting a program makes every worker carry."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import ringcron.cli
assert "structlog" in sys.modules
assert not {"rich", "httpx", "ringcron.local"} & sys.modules.keys(), "carried"
import rich.console
"""


def test_the_command_carries_no_rich_and_leaves_it_importable() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)
