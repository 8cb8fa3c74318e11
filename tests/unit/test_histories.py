"""Random histories of one recurring job against a ledger: every tick is run once or lies in exactly one skip.

The row is kept as the statements keep it (claim.sql, complete_runs.sql, reap_leases.sql, change_job.sql); what happens
to it is drawn: slow runs, outages, retries that cross the next tick, pauses, triggers, drains, workers that are lost
(also before they settle), claims that are handed back, deaths and redrives, and at last a patch of the schedule.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ringcron import changes
from ringcron.changes import Change
from ringcron.going import Going
from ringcron.lifecycle import Completion, after_run
from ringcron.models import (
    PARKED,
    Catchup,
    Cause,
    Claim,
    Definition,
    Job,
    JobState,
    Overlap,
    RetryPolicy,
    RunOutcome,
    Skip,
)
from ringcron.policies import settle
from ringcron.schedule import parse_schedule

T0 = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
RUNS = ["run", "run", "fail", "lose", "lose early", "hand back", "die early", "drain"]
ASKS = ["pause", "resume", "trigger", "redrive"]
FROM_SCHEDULE = {Cause.SCHEDULE, Cause.CATCHUP, Cause.BUFFER}


class History:
    """One job, its clock, and the ledger of its ticks."""

    def __init__(self, overlap: Overlap, catchup: Catchup) -> None:
        document = {"every": "PT60S", "anchor": "2026-12-01T09:00:00Z"}
        self.ticks = parse_schedule(document)
        self.now = T0 - timedelta(seconds=1)
        self.fate: dict[datetime, str] = {}
        self.handed_back: set[datetime] = set()
        definition = Definition(
            handler="h",
            payload=None,
            schedule=self.ticks.document,
            overlap=overlap,
            catchup=catchup,
            retry=RetryPolicy(max_attempts=3, min_backoff_seconds=30),
        )
        self.job = Job(
            id=UUID(int=7),
            slot=0,
            state=JobState.DUE,
            definition=definition,
            next_run_at=T0,
            scheduled_for=T0,
            cause=Cause.SCHEDULE,
            attempt=0,
            lost=0,
            occurrences=0,
            decided_until=self.now,
            kept=None,
            lease_owner=None,
            lease_until=None,
            lease_generation=0,
            claimed_at=None,
            cancel_requested=False,
            after_current=None,
            revision=1,
            pause_reason=None,
            paused_by=None,
            dead_reason=None,
            created_at=self.now,
            updated_at=self.now,
        )

    def _set(self, **columns: Any) -> None:
        self.job = dataclasses.replace(self.job, **columns)

    def _skip(self, skip: Skip | None) -> None:
        if skip is None:
            return
        found = self.ticks.upcoming(skip.first - timedelta(microseconds=1), skip.count)
        assert (found[0], found[-1]) == (skip.first, skip.last)
        for tick in found:
            assert tick not in self.fate, (tick, skip, self.fate[tick])
            self.fate[tick] = skip.reason.value

    def _ran(self, tick: datetime, cause: Cause) -> None:
        """The chain of attempts of an occurrence has ended."""
        if cause is not Cause.MANUAL:
            assert self.fate.setdefault(tick, "run") == "run", tick

    def claim(self, *, settled: bool = True) -> Going | None:
        """claim.sql and settle_claims.sql. Not `settled`: what the claim finds out is never written."""
        if self.job.state is not JobState.DUE:
            return None
        assert self.job.next_run_at is not None
        self.now = max(self.now, self.job.next_run_at)
        first = self.job.attempt == 0
        self._set(
            state=JobState.CLAIMED,
            attempt=self.job.attempt + 1,
            lease_generation=self.job.lease_generation + 1,
            claimed_at=self.now,
            lease_owner="w",
            lease_until=self.now + timedelta(days=9),
            occurrences=self.job.occurrences + (first and self.job.cause in FROM_SCHEDULE),
        )
        if first and self.job.cause is Cause.SCHEDULE:
            self._set(decided_until=max(self.job.decided_until, self.now))
        going = self._going()
        settlement = settle(going) if settled else None
        if settlement is None:
            return going
        self._skip(settlement.skip)
        if self.job.attempt > 1 and settlement.scheduled_for != self.job.scheduled_for:
            self._ran(self.job.scheduled_for, self.job.cause)
        if settlement.restart:
            self._set(attempt=1, decided_until=self.now, occurrences=self.job.occurrences + 1)
        self._set(scheduled_for=settlement.scheduled_for, cause=settlement.cause, kept=settlement.kept or None)
        if settlement.release:
            self._free(JobState.DUE, settlement.next_run_at)
            self._set(attempt=0, occurrences=self.job.occurrences - 1)
            return None
        return self._going()

    def _going(self) -> Going:
        job = self.job
        assert job.claimed_at is not None
        claim = Claim(
            id=job.id,
            next_run_at=job.next_run_at or T0,
            lease_generation=job.lease_generation,
            handler="h",
            attempt=job.attempt,
            scheduled_for=job.scheduled_for,
            cause=job.cause,
            claimed_at=job.claimed_at,
            decided_until=job.decided_until,
            lost=job.lost,
        )
        waiting = job.after_current or {}
        return Going(
            claim=claim,
            definition=job.definition,
            ticks=self.ticks,
            occurrences=job.occurrences,
            kept=job.kept or (),
            after_current=waiting,
            waiting=waiting,
        )

    def _free(self, state: JobState, next_run_at: datetime | None) -> None:
        parked = state in (JobState.PAUSED, JobState.DEAD)
        when = PARKED if parked else max(self.now, next_run_at or self.now)
        self._set(state=state, next_run_at=when, lease_owner=None, lease_until=None, claimed_at=None)

    def finish(self, outcome: RunOutcome) -> None:
        """complete_runs.sql, decided on the row as it is now."""
        occurrence, cause = self.job.scheduled_for, self.job.cause
        assert occurrence <= self.now, "no run before its time"
        after: Completion = after_run(self._going(), outcome, now=self.now, random=0.5)
        goes_on = after.scheduled_for == occurrence and after.state in (JobState.DUE, JobState.PAUSED)
        if not goes_on or (after.attempt == 0 and outcome is not RunOutcome.INTERRUPTED):
            self._ran(occurrence, cause)
        if outcome is RunOutcome.INTERRUPTED:
            self.handed_back.add(occurrence)
        for skip in after.skips:
            self._skip(skip)
        due = after.next_run_at or self.now
        self._free(after.state, max(due, self.now + timedelta(seconds=after.delay_seconds)))
        self._set(
            scheduled_for=after.scheduled_for,
            cause=after.cause,
            attempt=after.attempt,
            decided_until=after.decided_until,
            kept=after.kept or None,
            occurrences=self.job.occurrences - after.give_back,
            after_current=dict(after.after_current) if after.after_current else None,
        )

    def lose(self, *, convicted: bool = False) -> None:
        """reap_leases.sql: the worker never came back."""
        if convicted:
            self._free(JobState.DEAD, None)
            self._set(after_current=None)
        else:
            self._take_back(self.now)

    def hand_back(self) -> None:
        """release_unknown_claims.sql: the answer of the claim never came."""
        self._set(
            attempt=self.job.attempt - 1,
            occurrences=self.job.occurrences - (self.job.attempt == 1 and self.job.cause in FROM_SCHEDULE),
        )
        self._take_back(self.job.next_run_at)

    def _take_back(self, next_run_at: datetime | None) -> None:
        paused = "pause" in (self.job.after_current or {})
        left = {wish: value for wish, value in (self.job.after_current or {}).items() if wish != "pause"}
        self._free(JobState.PAUSED if paused else JobState.DUE, next_run_at)
        self._set(after_current=left or None)

    def change(self, change: Change) -> None:
        """change_job.sql."""
        for skip in change.skips:
            self._skip(skip)
        self.job = change.job
        if self.job.state is JobState.DUE:
            assert self.job.next_run_at is not None
            self._set(next_run_at=max(self.now, self.job.next_run_at))

    def end(self) -> None:
        """A patch takes the schedule away: every tick that had come has runs, also of a chain that ends, or a skip."""
        job = dataclasses.replace(self.job, begun=self.job.scheduled_for in self.handed_back)
        if (job.attempt > 0 or job.begun or job.cause is Cause.REDRIVE) and job.cause is not Cause.MANUAL:
            self._ran(job.scheduled_for, job.cause)
        definition = dataclasses.replace(job.definition, schedule=None, run_at=self.now + timedelta(days=1))
        self.change(changes.patch(job, definition, self.now, after_current=False))
        for tick in self.ticks.upcoming(T0 - timedelta(microseconds=1), 100_000 // 60):
            assert (tick in self.fate) == (tick <= self.now), tick

    def check(self) -> None:
        """The ledger against the schedule."""
        waiting = set(self.job.kept or ())
        if self.job.cause is not Cause.MANUAL:
            waiting.add(self.job.scheduled_for)
        assert not waiting & self.fate.keys(), waiting & self.fate.keys()
        until = self.job.decided_until
        if self.job.cause is Cause.SCHEDULE:  # the next claim settles what came after its tick
            until = min(until, self.job.scheduled_for)
        for tick in self.ticks.upcoming(T0 - timedelta(microseconds=1), 100_000 // 60):
            if tick > until:
                break
            assert (tick in self.fate) != (tick in waiting), tick


events = st.lists(
    st.tuples(
        st.sampled_from(RUNS + ASKS),
        st.floats(0, 400),
        st.floats(0, 200),
        st.sampled_from(["none", "none", "none", "pause", "trigger", "resume"]),
    ),
    max_size=14,
)


@given(overlap=st.sampled_from(list(Overlap)), catchup=st.sampled_from(list(Catchup)), drawn=events)
def test_no_history_loses_or_doubles_a_tick(
    overlap: Overlap, catchup: Catchup, drawn: list[tuple[str, float, float, str]]
) -> None:
    history = History(overlap, catchup)

    def ask(what: str) -> None:
        job, now = history.job, history.now
        if what == "redrive" or job.state is JobState.DEAD:
            if (what, job.state) == ("redrive", JobState.DEAD):
                history.change(changes.redrive(job, now))
        elif what == "pause":
            history.change(changes.pause(job, now, reason=None, by=None))
        elif what == "resume":
            history.change(changes.resume(job, now))
        elif what == "trigger":
            history.change(changes.trigger(job, now))

    for what, idle, taken, meanwhile in drawn:
        history.now += timedelta(seconds=idle)
        if what in ASKS:
            ask(what)
        elif history.claim(settled=what not in ("lose early", "hand back", "die early")) is not None:
            history.now += timedelta(seconds=taken / 2)
            ask(meanwhile)
            history.now += timedelta(seconds=taken / 2)
            if what == "hand back":
                history.hand_back()
            elif what in ("lose", "lose early", "die early"):
                history.lose(convicted=what == "die early")
            else:
                outcomes = {"run": RunOutcome.SUCCEEDED, "fail": RunOutcome.FAILED, "drain": RunOutcome.INTERRUPTED}
                history.finish(outcomes[what])
        history.check()
    history.end()
