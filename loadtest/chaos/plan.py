"""How large a cluster for faults is, what it promises, and what the nemeses of the run need of it.

Invariant: plain values; whether this machine has what is wanted is found out by the arena.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ArenaPlan:
    """How large, and with which promises (seconds)."""

    workers: int = 6
    concurrency: int = 10
    coordinators: int = 2
    lease: float = 6.0
    session: float = 4.0
    poll: float = 0.5
    small_disk: bool = False
    """Whether PostgreSQL gets a disk of its own that can be filled, where this machine lets us mount one."""
    replicated: bool = False
    """Whether PostgreSQL can have a standby, and the programs know the addresses of two."""
    fake_clock: bool = False
    """Whether PostgreSQL's clock is one that can be stepped, where there is libfaketime."""
    proxied: bool = False
    """Whether workers and API reach PostgreSQL, and workers ZooKeeper, through a proxy."""
    separable: bool = False
    """Whether workers are to be cut off from their servers: by network namespaces, or by the proxy where this machine
    has none."""
    namespaces: bool = True
    """Whether namespaces are wanted for that."""
    zookeepers: int = 1
    older: str | None = None
    """The commit that nemeses take an older build from; None: they find one."""
