"""Puts the History together: the database's rows, the sink's file, the callers' calls, the watcher's assignments.

Invariant: everything is on the database's clock: what was noted in elapsed seconds is carried over by one offset, which
is measured when the run is over. Whose a hit is, is what the database says of its generation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from loadtest.chaos.arena import Arena
from loadtest.chaos.asked import Asked
from loadtest.chaos.campaign import Campaign
from loadtest.chaos.history import Branch, Call, Fault, History, Hit, Job, Settings, Version
from loadtest.chaos.sink import Told, read_told
from loadtest.chaos.stepping import without_steps
from loadtest.chaos.truth import read_said
from loadtest.chaos.watcher import Watcher
from loadtest.chaos.workload import RETRY, Workload

SETTLED_SECONDS = 0.5
"""A tick so short before the last reading may still be decided after it."""


def gather(arena: Arena, campaign: Campaign, workload: Workload, watcher: Watcher) -> History:
    """Read everything. All faults are healed, and every job has had its time to end."""
    database = arena.database
    offset = database.clock_offset()
    ended_at = database.now().timestamp()
    steps = [] if arena.fake_clock is None else arena.fake_clock.steps
    steps = [dataclasses.replace(step, at=step.at + offset) for step in steps]
    left = without_steps(read_said(database, campaign.healed), steps)
    owners = {
        (version.job, version.generation): version.owner
        for one in (*arena.abandoned, left)
        for version in one.versions
        if version.owner is not None
    }
    return History(
        settings=Settings(
            lease=arena.plan.lease,
            poll=arena.plan.poll,
            session=arena.plan.session,
            bound=SETTLED_SECONDS,
        ),
        jobs=jobs_of(workload.asked, left.named),
        versions=left.versions,
        runs=left.runs,
        skips=left.skips,
        abandoned=[
            Branch(
                until=one.until + offset,
                jobs=jobs_of(workload.asked, one.named),
                versions=one.versions,
                runs=one.runs,
                skips=one.skips,
            )
            for one in arena.abandoned
        ],
        hits=[hit_of(told, owners, offset) for told in read_told(arena.sink_file)],
        calls=[call_of(call, left.named, offset) for call in workload.caller.calls],
        assignments=[dataclasses.replace(one, at=one.at + offset) for one in watcher.seen],
        faults=[_carried(fault, offset) for fault in campaign.faults.faults],
        steps=steps,
        ended_at=ended_at,
    )


def jobs_of(asked: Mapping[str, Asked], named: Mapping[str, tuple[str, float]]) -> dict[str, Job]:
    """What was asked for and is there, by id."""
    jobs = {}
    for name, one in asked.items():
        if name not in named or one.moved:
            continue
        job, created_at = named[name]
        jobs[job] = Job(
            job=job,
            created_at=created_at,
            ticks=one.ticks(created_at),
            run_at=one.run_at,
            max_attempts=int(str(RETRY["maxAttempts"])),
        )
    return jobs


def hit_of(told: Told, owners: Mapping[tuple[str, int], str | None], offset: float) -> Hit:
    """A run as the sink was told of it."""
    return Hit(
        job=told.job,
        generation=told.generation,
        scheduled_for=told.scheduled_for,
        attempt=told.attempt,
        worker=owners.get((told.job, told.generation)) or told.worker,
        begin=told.begin + offset,
        end=None if told.end is None else told.end + offset,
    )


def call_of(call: Call, named: Mapping[str, tuple[str, float]], offset: float) -> Call:
    """A call; one whose answer did not name its job is given the one of its name, if there is one."""
    job = call.job
    if job is None and call.key is not None and call.key in named:
        job = named[call.key][0]
    return dataclasses.replace(call, invoked=call.invoked + offset, ended=call.ended + offset, job=job)


def _carried(fault: Fault, offset: float) -> Fault:
    return dataclasses.replace(fault, begin=fault.begin + offset, end=fault.end + offset)


def takeovers(versions: Sequence[Version], lost: set[tuple[str, int]]) -> list[float]:
    """Seconds from the lapse of each lost lease to the reap."""
    found = []
    last: dict[str, Version] = {}
    for version in versions:
        before = last.get(version.job)
        last[version.job] = version
        if (
            before is not None
            and before.state == "claimed"
            and before.lease_until is not None
            and version.state != "claimed"
            and (version.job, before.generation) in lost
        ):
            found.append(version.at - before.lease_until)
    return sorted(found)
