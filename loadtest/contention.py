"""Does helping get in the owners' way? The same spike with helping and without, in turns; what did workers wait for?

Without helping a worker leaves rows of other slices alone (RINGCRON_HELP_AFTER_SECONDS is an hour), so that what is
seen then is what owners do to each other, and the rest is the helpers' doing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from loadtest.cluster.own import OwnCluster
from loadtest.load_client import interleaved
from loadtest.outcome import Outcome, Table, number
from loadtest.progress import Progress
from loadtest.trial import Trial, TrialPlan, run_trial
from loadtest.waits import Waits, WaitSampler

HELPING, ALONE = "helping", "without"
HELP_AFTER_SECONDS: Final = {HELPING: 0.25, ALONE: 3600.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """One trial, and what was seen beside it."""

    trial: Trial
    waits: Waits
    claims: int
    claimed: int

    def document(self, variant: str) -> dict[str, Any]:
        """For the record."""
        return {
            "variant": variant,
            "completeSeconds": self.trial.complete_seconds,
            "claims": self.claims,
            "claimedJobs": self.claimed,
            "waits": self.waits.document(),
        }


def compare_helping(
    cluster: OwnCluster, plan: TrialPlan, progress: Progress, *, workers: int, concurrency: int, repeat: int
) -> dict[str, list[Watched]]:
    """The trials of each variant, in turns, each with workers of its own."""
    found: dict[str, list[Watched]] = {HELPING: [], ALONE: []}
    for variant in interleaved([HELPING, ALONE], repeat):
        cluster.stop_workers()
        cluster.start_workers(workers, concurrency=concurrency, help_after_seconds=HELP_AFTER_SECONDS[variant])
        progress.say(f"{variant}: {len(plan.offsets):,} jobs")
        cluster.database.run("reset_statement_statistics")
        names = [worker.name for worker in cluster.workers]
        with WaitSampler(cluster.database_url, handler=cluster.handler, workers=names) as sampler:
            trial = run_trial(cluster, plan, progress)
        claims, claimed = cluster.database.run("count_claims")[0]
        found[variant].append(Watched(trial=trial, waits=sampler.waits, claims=claims, claimed=claimed))
    return found


def report_contention(outcome: Outcome, found: dict[str, list[Watched]]) -> None:
    """The table of both variants side by side."""
    outcome.tables.append(contention_table(found))
    outcome.runs += [watched.document(variant) for variant, runs in found.items() for watched in runs]


def contention_table(found: dict[str, list[Watched]]) -> Table:
    """Sessions by what they waited for, in a mean sample; locked rows; claims."""
    variants = list(found)
    kinds = sorted({kind for runs in found.values() for run in runs for kind in run.waits.sessions}, key=_order)
    samples = {variant: sum(run.waits.samples for run in runs) for variant, runs in found.items()}

    def mean(variant: str, total: int) -> str:
        return number(total / samples[variant]) if samples[variant] else "-"

    def row(title: str, cells: Sequence[str]) -> list[str]:
        return [title, *cells]

    rows = [
        row("all complete (s)", [number(median(r.trial.complete_seconds for r in found[v])) for v in variants]),
        row("samples", [f"{samples[v]:,}" for v in variants]),
        *(row(kind, [mean(v, sum(r.waits.sessions[kind] for r in found[v])) for v in variants]) for kind in kinds),
        row("due rows", [mean(v, sum(r.waits.due for r in found[v])) for v in variants]),
        row("of them locked, passed over", [mean(v, sum(r.waits.locked for r in found[v])) for v in variants]),
        row("claims", [f"{sum(r.claims for r in found[v]):,}" for v in variants]),
        row("jobs a claim", [_each(found[v]) for v in variants]),
    ]
    return Table(
        title="Does helping get in the owners' way?",
        columns=("in a mean sample", *variants),
        rows=rows,
        note="Workers' sessions with a statement in hand, by what they waited for in pg_stat_activity, 20 samples a "
        "second while something was due. `Lock` is one transaction waiting for another. A locked due row is one that a "
        "claim would have passed over (SKIP LOCKED), read from its xmax. A claim of fewer jobs than it could take came "
        "to rows that others had, or to none.",
    )


def _each(runs: Sequence[Watched]) -> str:
    claims = sum(run.claims for run in runs)
    return number(sum(run.claimed for run in runs) / claims) if claims else "-"


def _order(kind: str) -> tuple[int, str]:
    return (0 if kind.startswith("Lock") else 1 if kind.startswith("LWLock") else 2, kind)
