"""`chaos`: faults on purpose, and the proof that nothing was lost, nothing ran twice at once, nothing stayed silent.

Exit codes: 0 every invariant holds and every fault was felt; 1 something is violated; 3 nothing is violated, but a
fault was not felt, so the run proves nothing about it: the verdict is unknown.
"""

from __future__ import annotations

import dataclasses
import signal
from collections import Counter, defaultdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer

from loadtest import flags
from loadtest.chaos.arena import Arena, arena
from loadtest.chaos.branches import Losses, losses
from loadtest.chaos.campaign import Campaign
from loadtest.chaos.gathering import gather, takeovers
from loadtest.chaos.history import Call, History
from loadtest.chaos.invariants import INVARIANTS, check
from loadtest.chaos.keeping import keep
from loadtest.chaos.nemeses import NEMESES, QUICK, Bite
from loadtest.chaos.nemeses.workers import count_stale_in
from loadtest.chaos.plan import ArenaPlan
from loadtest.chaos.telling import told as tell
from loadtest.chaos.timeline import draw
from loadtest.chaos.watcher import Watcher
from loadtest.distributions import Distribution
from loadtest.machine import describe_machine, describe_versions
from loadtest.outcome import LineChart, Outcome, Series, Table
from loadtest.progress import Progress
from loadtest.record import finish
from loadtest.session import RESULTS, console_for_people
from ringcron.cli.faults import told

UNKNOWN: Final = 3
SPAN_SECONDS: Final = 5.0
SHOWN: Final = 3
"""Violations of one invariant that are told in full."""


class Network(StrEnum):
    """What cuts a worker off from its servers."""

    NAMESPACES = "namespaces"
    PROXY = "proxy"


def chaos(
    seconds: Annotated[float, typer.Option(min=1, help="How long faults are made.")] = 120.0,
    minutes: Annotated[float | None, typer.Option(min=0.1, help="The same in minutes.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="Decides the order of the faults and what each picks.")] = 1,
    nemesis: Annotated[
        list[str] | None,
        typer.Option(help=f"N1, N2, … (several times), `quick` or `all`; default: quick ({', '.join(QUICK)})."),
    ] = None,
    at_once: Annotated[int, typer.Option(min=1, max=4, help="How many nemeses at a time.")] = 1,
    workers: flags.Workers = 6,
    due_per_second: Annotated[float, typer.Option(min=0.5, max=500, help="How many jobs fall due per second.")] = 20.0,
    felt_once: Annotated[
        bool, typer.Option("--felt-once", help="A fault that was felt once is enough: for slow machines.")
    ] = False,
    network: Annotated[
        Network,
        typer.Option(help="By what a worker is cut off (N12 to N14). Namespaces need root, else the proxy does."),
    ] = Network.NAMESPACES,
    older: Annotated[
        str | None,
        typer.Option(help="The commit of the older build of N18V; default: the newest that fits.", show_default=False),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Only tell which nemeses there are.")] = False,
    out: flags.Out = None,
) -> None:
    """The command."""
    if list_:
        for number, kind in NEMESES.items():
            print(f"{number:12} {kind.title}{' (a run of its own)' if kind.alone else ''}")
        raise typer.Exit(0)
    numbers = _numbers(nemesis)
    seconds = seconds if minutes is None else minutes * 60
    outcome = Outcome(
        command="chaos",
        title=f"Chaos: {seconds:.0f} s of {', '.join(numbers)}, {workers} workers, {due_per_second:g} due per second",
        question="Is anything lost, run twice at once, or silent?",
        arguments={
            "seconds": seconds,
            "seed": seed,
            "nemesis": numbers,
            "at-once": at_once,
            "workers": workers,
            "due-per-second": due_per_second,
            "felt-once": felt_once,
            "network": network.value,
            "older": older,
        },
    )
    signal.signal(signal.SIGTERM, _leave)
    progress = Progress()
    folder = out or RESULTS / "chaos"
    campaign = Campaign(numbers=numbers, seconds=seconds, seed=seed, due_per_second=due_per_second, at_once=at_once)
    plan = ArenaPlan(
        workers=workers,
        proxied=any(NEMESES[number].proxied for number in numbers),
        small_disk=any(NEMESES[number].small_disk for number in numbers),
        fake_clock=any(NEMESES[number].fakes_clock for number in numbers),
        replicated=any(NEMESES[number].replicated for number in numbers),
        separable=any(NEMESES[number].separates for number in numbers),
        namespaces=network is Network.NAMESPACES,
        older=older,
        zookeepers=max(NEMESES[number].zookeepers for number in numbers),
    )
    with told():
        machine = describe_machine(Path.cwd())
        with arena(plan, progress) as cluster:
            versions = describe_versions(cluster.database)
            with Watcher(cluster.zookeeper.hosts) as watcher:
                workload = campaign.run(cluster, watcher, progress)
                progress.say("reading what the database, the sink and the callers saw")
                history = gather(cluster, campaign, workload, watcher)
            bites = [one.bite(history, campaign.active.get(number, 0.0)) for number, one in campaign.nemeses.items()]
            if felt_once:
                bites = [dataclasses.replace(bite, wanted=min(1, bite.wanted)) for bite in bites]
            progress.say("checking")
            _report(outcome, campaign, history, bites, workload.caller.counts, cluster)
            folder.mkdir(parents=True, exist_ok=True)
            keep(history, folder / "history.json.gz")
            (folder / "timeline.html").write_text(draw(history, outcome.title), encoding="utf-8")
    code = finish(outcome, folder, machine=machine, versions=versions, console=console_for_people())
    print(f"timeline {folder / 'timeline.html'}")
    unknown = [bite for bite in bites if not bite.enough]
    if code and unknown and len(outcome.problems) == len(unknown):
        code = UNKNOWN
    raise typer.Exit(code)


def _numbers(given: list[str] | None) -> list[str]:
    by_name = {number.upper(): number for number in NEMESES}
    every = tuple(number for number, kind in NEMESES.items() if not kind.alone)
    numbers: list[str] = []
    for one in given or ["quick"]:
        for number in {"quick": QUICK, "all": every}.get(one, (by_name.get(one.upper(), one),)):
            if number not in NEMESES:
                raise typer.BadParameter(f"{number} is none of {', '.join(NEMESES)}, quick, all")
            if number not in numbers:
                numbers.append(number)
    for number in numbers:
        if NEMESES[number].alone and len(numbers) > 1:
            raise typer.BadParameter(f"{number} needs a run of its own")
    return numbers


def _leave(sign: int, _: object) -> NoReturn:
    raise SystemExit(128 + sign)


def _report(
    outcome: Outcome,
    campaign: Campaign,
    history: History,
    bites: list[Bite],
    counts: Counter[str],
    cluster: Arena,
) -> None:
    violations = check(history)
    by_invariant = Counter(violation.invariant for violation in violations)
    for invariant, count in by_invariant.items():
        of_it = [violation for violation in violations if violation.invariant == invariant]
        outcome.problems += [tell(history, violation) for violation in of_it[:SHOWN]]
        if count > SHOWN:
            outcome.problems.append(f"{invariant}: {count - SHOWN} more")
    outcome.problems += campaign.stuck
    outcome.problems += [
        f"the verdict is unknown: {bite.number} was not felt: {bite.counted} {bite.what}, {bite.wanted} are demanded"
        for bite in bites
        if not bite.enough
    ]
    if cluster.plan.separable:
        cut_by = "the proxy" if cluster.wiring.namespaces is None else "rules of nft in their network namespaces"
        outcome.notes.append(f"workers were cut off by {cut_by}")
    outcome.notes += [f"{number} was left out: {why}" for number, why in campaign.skipped.items()]
    outcome.notes += [f"ended by itself and was started again: {one}" for one in cluster.revived[:5]]
    ends = Counter(versions[-1].state for versions in history.versions_of.values())
    outcomes = Counter(run.outcome for run in history.runs)
    lost = {(run.job, run.generation) for run in history.runs if run.outcome == "lost"}
    outcome.figure("jobs", len(history.versions_of), "", meaning=_counted(ends))
    outcome.figure("runs", len(history.runs), "", meaning=_counted(outcomes))
    outcome.figure("runs at the sink", len(history.hits), "")
    outcome.figure("changes of rows", len(history.versions), "")
    outcome.figure("assignments", len({one.epoch for one in history.assignments}), "")
    outcome.figure("violations", len(violations) + len(campaign.stuck), "", meaning=_counted(by_invariant))
    outcome.figure("writes refused as stale", count_stale_in(cluster.logs), "")
    outcome.figure("started again by the supervisor", len(cluster.revived), "")
    outcome.figure("all ended after the last fault", campaign.settled_seconds, "s")
    if history.abandoned:
        gone = losses(history)
        outcome.figure("commits of jobs lost by failover", len(gone.versions), "", meaning=_gone(gone))
        outcome.figure("acknowledged creates lost (201)", gone.creates, "")
    late = takeovers(history.versions, lost)
    if late:
        found = Distribution.of(late)
        outcome.figure("lapsed lease taken back after", found.p50, "s", meaning=f"p50 of {len(late)}")
        outcome.figure("at the latest", found.greatest, "s")
    outcome.tables.append(
        Table(
            title="Faults",
            columns=("nemesis", "what", "for (s)", "rounds", "felt", "demanded"),
            rows=[
                [
                    bite.number,
                    bite.what,
                    f"{campaign.active.get(bite.number, 0.0):.0f}",
                    str(campaign.nemeses[bite.number].rounds),
                    f"{bite.counted}",
                    f"{bite.wanted}",
                ]
                for bite in bites
            ],
        )
    )
    outcome.tables.append(
        Table(title="Calls", columns=("call", "count"), rows=[[name, str(counts[name])] for name in sorted(counts)])
    )
    outcome.charts.append(_latencies(history))
    outcome.runs.append(_document(history, by_invariant))


def _gone(gone: Losses) -> str:
    return (
        f"{gone.creates} acknowledged creates, {gone.cancels} cancels, {len(gone.claims)} claims, of which {gone.ran} "
        f"had begun and {gone.again} were made again, {gone.runs} runs"
    )


def _latencies(history: History) -> LineChart:
    """How the API answered over time."""
    first = min((call.invoked for call in history.calls), default=0.0)
    spans: dict[float, list[Call]] = defaultdict(list)
    for call in history.calls:
        spans[(call.invoked - first) // SPAN_SECONDS * SPAN_SECONDS].append(call)
    took = {at: sorted(call.ended - call.invoked for call in calls) for at, calls in sorted(spans.items())}
    unknown = [(at, float(sum(call.outcome == "info" for call in spans[at]))) for at in took]
    return LineChart(
        title="Calls of the API",
        x="time since the first call (s)",
        y="seconds until the answer; calls without one",
        series=[
            Series(name="median", points=[(at, found[len(found) // 2]) for at, found in took.items()]),
            Series(name="longest", points=[(at, found[-1]) for at, found in took.items()]),
            Series(name=f"without an answer, in {SPAN_SECONDS:g} s", points=unknown, role="muted", step=True),
        ],
        note="Callers that leave before the answer count as calls without one.",
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _document(history: History, by_invariant: Counter[str]) -> dict[str, Any]:
    return {
        "violations": {name: by_invariant.get(name, 0) for name in INVARIANTS},
        "faults": [
            {"name": fault.name, "target": fault.target, "begin": fault.begin, "end": fault.end}
            for fault in history.faults
        ],
    }
