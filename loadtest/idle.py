"""`idle`: what does a fleet cost that has nothing to do? Statements, CPU, memory.

The same cluster is measured without workers first, so that what coordinator and API cost is not laid on the workers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from loadtest import flags
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.jobs import insert_ballast
from loadtest.outcome import Bar, BarChart, Outcome, Table, number
from loadtest.progress import Progress
from loadtest.session import Where, measure
from loadtest.spike import workers_started
from loadtest.usage import Memory, cpu_seconds, memory_of, memory_of_tree
from ringcron.clock import SystemClock

SETTLE_SECONDS: Final = 15.0
MEGABYTE: Final = 1024 * 1024
SHOWN: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Rest:
    """What a cluster at rest used, per second."""

    statements: float
    transactions: float
    postgres_cpu: float
    workers_cpu: float
    calls: Sequence[tuple[str, float, float]]
    """Statement, calls per second, milliseconds of execution per second; the most called first."""


def idle(
    workers: flags.Workers = 20,
    concurrency: flags.Concurrency = 10,
    ballast: flags.Ballast = 100_000,
    seconds: Annotated[float, typer.Option(min=2, max=3600, help="How long to watch.")] = 30.0,
    out: flags.Out = None,
) -> None:
    """The command."""
    outcome = Outcome(
        command="idle",
        title=f"Idle: {workers} workers with nothing due, {ballast:,} jobs far ahead",
        question="What does a fleet cost that has nothing to do?",
        arguments={"workers": workers, "concurrency": concurrency, "ballast": ballast, "seconds": seconds},
    )

    def body(cluster: OwnCluster, outcome: Outcome, progress: Progress) -> None:
        insert_ballast(cluster.database, ballast, handler=cluster.handler, progress=progress)
        progress.say("watching the cluster without workers")
        time.sleep(SETTLE_SECONDS / 3)
        before = watch(cluster, seconds / 2)
        cluster.start_workers(workers, concurrency=concurrency)
        outcome.notes += workers_started(cluster)
        progress.say(f"settling for {SETTLE_SECONDS:g} s, then watching {workers} workers for {seconds:g} s")
        time.sleep(SETTLE_SECONDS)
        rest = watch(cluster, seconds)
        _report(outcome, cluster, before, rest)

    measure(Where(out=out), ClusterPlan(), outcome, body)


def watch(cluster: OwnCluster, seconds: float) -> Rest:
    """Watch a cluster at rest."""
    clock, database = SystemClock(), cluster.database

    def reading() -> tuple[float, float, float, float]:
        return (
            clock.elapsed(),
            float(database.value("read_transactions")),
            cpu_seconds([cluster.postgres_pid]) or 0.0,
            cpu_seconds(worker.pid for worker in cluster.workers) or 0.0,
        )

    database.run("reset_statement_statistics")
    began = reading()
    time.sleep(seconds)
    calls = database.run("list_statement_statistics")
    ended = reading()
    span = ended[0] - began[0]
    return Rest(
        statements=sum(row[1] for row in calls) / span,
        transactions=(ended[1] - began[1]) / span,
        postgres_cpu=(ended[2] - began[2]) / span,
        workers_cpu=(ended[3] - began[3]) / span,
        calls=[(row[0], row[1] / span, row[2] / span) for row in calls],
    )


def _report(outcome: Outcome, cluster: OwnCluster, before: Rest, rest: Rest) -> None:
    count = len(cluster.workers)
    memory = [found for found in (memory_of(worker.pid) for worker in cluster.workers) if found is not None]
    parts = memory_of_tree(cluster.workers[0].pid)
    added = rest.statements - before.statements
    outcome.figure("statements a worker", added / count, "/s", meaning="of the whole cluster, less it without workers")
    outcome.figure("statements", rest.statements, "/s", meaning=f"without workers: {number(before.statements)}")
    outcome.figure("transactions", rest.transactions, "/s", meaning=f"without workers: {number(before.transactions)}")
    outcome.figure(
        "CPU of PostgreSQL",
        100 * rest.postgres_cpu,
        "% of a core",
        meaning=f"without workers: {number(100 * before.postgres_cpu)} %",
    )
    outcome.figure("CPU of all workers", 100 * rest.workers_cpu, "% of a core")
    report_memory(outcome, memory, parts)
    outcome.tables.append(
        Table(
            title="What the database was asked",
            columns=("statement", "calls/s", "ms/s"),
            rows=[[text, number(calls), number(ms)] for text, calls, ms in rest.calls[:SHOWN]],
            note="From pg_stat_statements, with what the API and the coordinator asked. Execution time only.",
        )
    )
    outcome.runs.append({"withoutWorkers": _document(before), "withWorkers": _document(rest)})


def report_memory(outcome: Outcome, memory: Sequence[Memory], parts: Sequence[tuple[str, Memory]]) -> None:
    """What a worker and its guard and handler processes need."""
    if not memory:
        return
    outcome.figure(
        "memory of a worker",
        sum(one.pss for one in memory) / len(memory) / MEGABYTE,
        "MB",
        meaning=f"PSS, {memory[0].processes} processes each",
    )
    outcome.figure("memory of all workers", sum(one.pss for one in memory) / MEGABYTE, "MB", meaning="PSS")
    outcome.charts.append(
        BarChart(
            title="Memory of one worker, by process",
            x="PSS (MB)",
            bars=[Bar(name=name, value=part.pss / MEGABYTE) for name, part in parts],
            note="PSS counts a page that several processes share by its share.",
        )
    )


def _document(rest: Rest) -> dict[str, Any]:
    return {
        "statementsPerSecond": rest.statements,
        "transactionsPerSecond": rest.transactions,
        "postgresCpuCores": rest.postgres_cpu,
        "workersCpuCores": rest.workers_cpu,
        "calls": [{"statement": text, "perSecond": calls, "msPerSecond": ms} for text, calls, ms in rest.calls],
    }
