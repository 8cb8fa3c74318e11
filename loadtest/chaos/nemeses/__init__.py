"""The nemeses, by the numbers of the fault catalogue."""

from __future__ import annotations

from typing import Final

from loadtest.chaos.nemeses.api import Herd, Moving, Storm
from loadtest.chaos.nemeses.base import Bite, FaultLog, Nemesis, Stage
from loadtest.chaos.nemeses.clocks import SteppingClock, WrongClocks
from loadtest.chaos.nemeses.coordinators import KillingLeader, StoppingLeader
from loadtest.chaos.nemeses.network import Cutting, FromPostgres, FromZooKeeper, OneWay
from loadtest.chaos.nemeses.postgres import Away, Frozen, Full, Restarting, Snapshot
from loadtest.chaos.nemeses.replicas import Failover, Forgetting
from loadtest.chaos.nemeses.versions import TwoVersions
from loadtest.chaos.nemeses.workers import Flocking, Killing, Misbehaving, Rolling, Stopping
from loadtest.chaos.nemeses.zookeeper import Deleting, Expiring, LosingLeader, Outage

__all__ = ["NEMESES", "QUICK", "Bite", "FaultLog", "Nemesis", "Stage"]

NEMESES: Final[dict[str, type[Nemesis]]] = {
    nemesis.number: nemesis
    for nemesis in (
        Killing,
        Stopping,
        StoppingLeader,
        KillingLeader,
        Restarting,
        Away,
        Frozen,
        Failover,
        Forgetting,
        Cutting,
        Outage,
        LosingLeader,
        Expiring,
        FromZooKeeper,
        FromPostgres,
        OneWay,
        WrongClocks,
        SteppingClock,
        Full,
        Misbehaving,
        Rolling,
        TwoVersions,
        Flocking,
        Herd,
        Storm,
        Moving,
        Snapshot,
        Deleting,
    )
}
QUICK: Final = ("N1", "N2", "N5", "N9", "N11", "N21")
"""Those of CI."""
