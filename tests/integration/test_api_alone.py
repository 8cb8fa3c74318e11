"""What the API needs: PostgreSQL, and nobody else."""

from __future__ import annotations

import subprocess
import sys


def test_the_api_has_no_way_to_reach_zookeeper_or_a_leader() -> None:
    """A62, H13: whoever leads, and whether ZooKeeper is there, it cannot matter to a program that holds no client."""
    asked = (
        "import sys, ringcron_api.__main__, ringcron_api.app\n"
        "reaching = ('kazoo', 'ringcron.membership', 'ringcron_coordinator', 'ringcron_shard_worker')\n"
        "print([name for name in sys.modules if name.startswith(reaching)])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=110, check=True)
    assert done.stdout == "[]\n"
