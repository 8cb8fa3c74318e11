"""A fleet that grows: real worker processes, step by step.

For each size: how long until the new workers have reported themselves, how long the ring then took to be shared out
anew, at which epoch, what a worker needs of memory, and what the fleet costs at rest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from loadtest.cluster.own import OwnCluster
from loadtest.idle import MEGABYTE, report_memory, watch
from loadtest.outcome import LineChart, Outcome, Series, Table, number
from loadtest.progress import Progress
from loadtest.usage import memory_of, memory_of_tree
from ringcron.clock import SystemClock

SETTLE_SECONDS: Final = 10.0
WATCH_SECONDS: Final = 10.0
SPARE_MEMORY: Final = 1.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """The fleet at one size."""

    workers: int
    start_seconds: float
    rebalance_seconds: float
    epoch: int
    arcs_a_worker: float
    pss_a_worker: float
    """Bytes."""
    statements: float
    postgres_cpu: float
    """Cores."""
    workers_cpu: float


def grow_fleet(cluster: OwnCluster, sizes: Sequence[int], outcome: Outcome, progress: Progress) -> list[Step]:
    """Grow it through `sizes`. A size that this machine has no memory for is left out, with a note."""
    clock = SystemClock()
    steps: list[Step] = []
    for size in sizes:
        more = size - len(cluster.workers)
        each = steps[-1].pss_a_worker if steps else 64 * MEGABYTE
        if (free := _free_memory()) is not None and free < SPARE_MEMORY * more * each:
            outcome.notes.append(
                f"{size} workers were left out: {more} more need about {more * each / 1024**3:.1f} GB of memory and "
                f"{free / 1024**3:.1f} GB are free."
            )
            break
        began = clock.elapsed()
        cluster.start_workers(more, concurrency=10)
        started = clock.elapsed() - began - cluster.rebalance_seconds
        time.sleep(SETTLE_SECONDS)
        holdings = cluster.holdings()
        arcs = cluster.database.run("list_arcs", handler=cluster.handler)
        memory = [found.pss for found in (memory_of(worker.pid) for worker in cluster.workers) if found is not None]
        progress.say(f"{size} workers share the ring; watching them for {WATCH_SECONDS:g} s")
        rest = watch(cluster, WATCH_SECONDS)
        steps.append(
            Step(
                workers=size,
                start_seconds=started,
                rebalance_seconds=cluster.rebalance_seconds,
                epoch=max(one.epoch or 0 for one in holdings),
                arcs_a_worker=len(arcs) / len(holdings),
                pss_a_worker=sum(memory) / len(memory) if memory else 0.0,
                statements=rest.statements,
                postgres_cpu=rest.postgres_cpu,
                workers_cpu=rest.workers_cpu,
            )
        )
    if cluster.workers:
        outcome.notes.append(
            "The ring is at its epoch after all joins before; waves of workers that start within two seconds of each "
            "other are one change."
        )
        report_memory(
            outcome,
            [found for found in (memory_of(worker.pid) for worker in cluster.workers) if found is not None],
            memory_of_tree(cluster.workers[0].pid),
        )
    return steps


def report_fleet(outcome: Outcome, steps: Sequence[Step]) -> None:
    """A table and a picture of the steps."""
    if not steps:
        return
    outcome.tables.append(
        Table(
            title="The fleet as it grows, at rest",
            columns=(
                "workers",
                "started in (s)",
                "ring shared anew in (s)",
                "epoch",
                "arcs each",
                "MB each",
                "statements/s",
                "PostgreSQL CPU (% of a core)",
                "all workers CPU (% of a core)",
            ),
            rows=[
                [
                    str(step.workers),
                    number(step.start_seconds),
                    number(step.rebalance_seconds),
                    str(step.epoch),
                    number(step.arcs_a_worker),
                    number(step.pss_a_worker / MEGABYTE),
                    number(step.statements),
                    number(100 * step.postgres_cpu),
                    number(100 * step.workers_cpu),
                ]
                for step in steps
            ],
            note="The ring is shared anew from when the last worker has reported itself. Memory is PSS.",
        )
    )
    if len(steps) > 1:
        outcome.charts.append(
            LineChart(
                title="The fleet at rest",
                x="workers",
                y="per second; % of a core",
                series=[
                    Series(name="statements/s", points=[(float(s.workers), s.statements) for s in steps]),
                    Series(name="PostgreSQL CPU (%)", points=[(float(s.workers), 100 * s.postgres_cpu) for s in steps]),
                    Series(name="workers CPU (%)", points=[(float(s.workers), 100 * s.workers_cpu) for s in steps]),
                ],
            )
        )
    outcome.runs.append({"fleet": [asdict(step) for step in steps]})


def _free_memory() -> float | None:
    """Bytes that new processes may have; None where the kernel does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
