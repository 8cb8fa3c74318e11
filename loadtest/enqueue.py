"""`enqueue`: how many jobs a second can be created, one by one and in batches? Does the bell cost anything?

Jobs far ahead ring no bell; jobs due at once do, unless the API is told not to (`RINGCRON_BELL=poll`).
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Final

import typer

from loadtest import flags
from loadtest.cluster.given import GivenCluster
from loadtest.cluster.own import ClusterPlan, OwnCluster
from loadtest.jobs import insert_ballast
from loadtest.load_client import Request, Sent, interleaved, send, send_by_wrk, wrk
from loadtest.outcome import Bar, BarChart, Outcome
from loadtest.progress import Progress
from loadtest.session import Where, measure_anywhere

FAR: Final = timedelta(days=2)
SINGLE_CONNECTIONS: Final = 32
OWN_CLIENT_CONNECTIONS: Final = 4

BATCH, FAR_AHEAD, DUE, DUE_NO_BELL = (
    "batch endpoint, far ahead",
    "one by one, far ahead",
    "one by one, due at once",
    "one by one, due at once, no bell",
)


def enqueue(
    seconds: Annotated[float, typer.Option(min=1, max=600, help="How long each variant is measured.")] = 5.0,
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Jobs in one batch.")] = 1000,
    clients: Annotated[int, typer.Option(min=1, max=64, help="Connections that send batches.")] = 2,
    ballast: flags.Ballast = 0,
    repeat: flags.Repeat = 3,
    out: flags.Out = None,
    api: flags.Api = None,
    database: flags.DatabaseUrl = None,
    api_key: flags.ApiKey = None,
) -> None:
    """The command."""
    outcome = Outcome(
        command="enqueue",
        title="Enqueue: jobs created through the API, in batches and one by one",
        question="How many jobs a second can be created, and does the bell cost anything?",
        arguments={
            "seconds": seconds,
            "batch-size": batch_size,
            "clients": clients,
            "ballast": ballast,
            "repeat": repeat,
        },
    )

    def body(cluster: OwnCluster | GivenCluster, outcome: Outcome, progress: Progress) -> None:
        insert_ballast(cluster.database, ballast, handler=cluster.handler, progress=progress)
        # A handler that no worker has: what is due at once stays where it is, and takes no part.
        meter = _Meter(cluster, seconds=seconds, batch_size=batch_size, clients=clients)
        variants = [BATCH, FAR_AHEAD, DUE]
        if isinstance(cluster, OwnCluster):
            variants.append(DUE_NO_BELL)
        else:
            outcome.notes.append("A given cluster: its bell is not switched off, so it is not compared without.")
        measured: dict[str, list[Sent]] = {variant: [] for variant in variants}
        before = cluster.database.value("count_jobs_of", handler=meter.handler)
        for variant in interleaved(variants, repeat):
            progress.say(f"{variant}, {seconds:g} s")
            measured[variant].append(meter.measure(variant))
        stored = cluster.database.value("count_jobs_of", handler=meter.handler) - before
        accepted = sum(sent.accepted for found in measured.values() for sent in found)
        refused = sum(sent.refused for found in measured.values() for sent in found)
        if stored < accepted:
            outcome.problems.append(f"{accepted - stored:,} of {accepted:,} jobs were accepted and are not stored")
        if refused:
            outcome.problems.append(f"{refused:,} requests were refused")
        outcome.notes.append(
            f"{accepted:,} jobs were accepted, {stored:,} are stored (the clients left when their time was up, without "
            "waiting for the last answers)."
        )
        outcome.notes.append(
            f"One by one: {SINGLE_CONNECTIONS} connections of wrk."
            if wrk()
            else f"One by one: {OWN_CLIENT_CONNECTIONS} connections of a client in Python, which takes CPU from the "
            "API: install wrk to measure more."
        )
        _report(outcome, measured)
        outcome.runs.append({variant: [sent._asdict() for sent in found] for variant, found in measured.items()})

    measure_anywhere(Where(out=out, api=api, database=database, api_key=api_key), ClusterPlan(), outcome, body)


class _Meter:
    """Measures one variant at a time."""

    def __init__(self, cluster: OwnCluster | GivenCluster, *, seconds: float, batch_size: int, clients: int) -> None:
        self.handler = "loadtest-enqueue"
        self._cluster = cluster
        self._seconds = seconds
        self._batch_size = batch_size
        self._clients = clients
        self._rings = True

    def measure(self, variant: str) -> Sent:
        rings = variant != DUE_NO_BELL
        if isinstance(self._cluster, OwnCluster) and rings != self._rings:
            self._cluster.start_api(bell=rings)
            self._rings = rings
        now = self._cluster.database.now()
        run_at = now + FAR if variant in (BATCH, FAR_AHEAD) else now
        job = {"runAt": run_at.isoformat(), "handler": self.handler, "payload": {}}
        url, key = self._cluster.api_url, self._cluster.api_key
        if variant == BATCH:
            body = json.dumps({"jobs": [job] * self._batch_size}).encode()
            request = Request(url, key, "/jobs/batch", body, 207, b'"jobId"')
            return send(request, connections=self._clients, seconds=self._seconds)
        request = Request(url, key, "/jobs", json.dumps(job).encode(), 201)
        if wrk():
            return send_by_wrk(request, connections=SINGLE_CONNECTIONS, seconds=self._seconds)
        return send(request, connections=OWN_CLIENT_CONNECTIONS, seconds=self._seconds)


def _report(outcome: Outcome, measured: dict[str, list[Sent]]) -> None:
    for variant, found in measured.items():
        outcome.figure(variant, [sent.rate for sent in found], "jobs/s")
    if DUE_NO_BELL in measured:
        ratios = [a.rate / b.rate for a, b in zip(measured[DUE], measured[DUE_NO_BELL], strict=True)]
        outcome.figure("with the bell / without", ratios, "", meaning="1: the bell costs creates nothing")
    figures = {figure.name: figure for figure in outcome.figures}
    outcome.charts.append(
        BarChart(
            title="Jobs created per second",
            x="jobs per second",
            bars=[
                Bar(
                    name=variant,
                    value=figures[variant].median,
                    low=min(figures[variant].values),
                    high=max(figures[variant].values),
                )
                for variant in measured
            ],
            note="Bars are medians, lines the range.",
        )
    )
