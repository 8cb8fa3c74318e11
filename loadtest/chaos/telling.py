"""A violation for people: what does not hold, and the shortest part of the history that shows it.

Invariant: pure. Of the violation's job everything is told that lies around its evidence, in order of time, and what
was done to the workers meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loadtest.chaos.branches import lost_by
from loadtest.chaos.history import History, Version, Violation

AROUND_SECONDS: Final = 3.0
LINES: Final = 30


def told(history: History, violation: Violation) -> str:
    """Some lines of text."""
    head = f"{violation.invariant}: {violation.message}" + ("" if violation.job is None else f" (job {violation.job})")
    if violation.job is None:
        return "\n".join([head, *(f"    {one}" for one in violation.evidence)])
    instants = [at for one in violation.evidence for at in _instants(one)]
    begin, end = (min(instants), max(instants)) if instants else (0.0, history.ended_at)
    events = sorted(
        (at, text)
        for at, text in _events(history, violation.job)
        if begin - AROUND_SECONDS <= at <= end + AROUND_SECONDS
    )
    zero = events[0][0] if events else 0.0
    lines = [f"    {at - zero:9.3f} s  {text}" for at, text in events]
    if len(lines) > LINES:
        lines = [*lines[: LINES // 2], f"    … {len(lines) - LINES} more", *lines[-LINES // 2 :]]
    since = f"    from {zero:.3f} on" if events else "    nothing is known of it"
    return "\n".join([head, since, *lines])


def _instants(evidence: object) -> Iterator[float]:
    for name in ("at", "claimed_at", "finished_at", "begin", "end", "invoked", "ended", "decided_at"):
        value = getattr(evidence, name, None)
        if isinstance(value, float):
            yield value


def _events(history: History, job: str) -> Iterator[tuple[float, str]]:
    workers: set[str] = set()
    before: Version | None = None
    for version in history.versions_of.get(job, ()):
        yield version.at, _version(version, before)
        before = version
        workers |= {version.owner} if version.owner else set()
    if history.abandoned:
        for version in lost_by(history, len(history.abandoned)):
            if version.job == job:
                yield version.at, f"{_version(version, None)}: LOST with its server"
    for run in history.runs_of.get(job, ()):
        yield run.finished_at, f"run {run.generation} attempt {run.attempt} of {run.worker}: {run.outcome}"
    for skip in history.skips_of.get(job, ()):
        yield skip.decided_at, f"skip of {skip.count} ticks, {skip.first:.3f} to {skip.last:.3f}: {skip.reason}"
    for hit in history.hits_of.get(job, ()):
        yield (
            hit.begin,
            f"sink: {hit.generation} begins, attempt {hit.attempt} for {hit.scheduled_for:.3f}, {hit.worker}",
        )
        if hit.end is not None:
            yield hit.end, f"sink: {hit.generation} ends"
    for call in history.calls:
        if call.job == job:
            yield call.invoked, f"{call.kind} sent"
            yield call.ended, f"{call.kind}: {call.outcome} {call.status or ''}"
    for fault in history.faults:
        if fault.target == "*" or any(worker.startswith(fault.target) for worker in workers):
            yield fault.begin, f"{fault.name} on {fault.target} begins"
            yield fault.end, f"{fault.name} on {fault.target} is over"


def _version(version: Version, before: Version | None) -> str:
    if (
        before is not None
        and before.state == version.state == "claimed"
        and (before.generation, before.owner) == (version.generation, version.owner)
        and before.lease_until != version.lease_until
        and version.lease_until is not None
    ):
        return f"row: renewed for {version.lease_until - version.at:.1f} s"
    held = ""
    if version.owner is not None and version.lease_until is not None:
        held = f" by {version.owner} for {version.lease_until - version.at:.1f} s"
    change = "" if version.change == "update" else f" ({version.change})"
    return (
        f"row: {version.state}{change}, generation {version.generation}{held}, attempt {version.attempt} "
        f"for {version.scheduled_for:.3f} ({version.cause})"
    )
