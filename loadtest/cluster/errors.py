"""What can go wrong with a cluster under load."""

from __future__ import annotations

from ringcron.errors import RingcronError


class ClusterError(RingcronError):
    """The cluster cannot be put under this load."""
