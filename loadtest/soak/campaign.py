"""One soak, from the first job to the last: load, kills, samples and judging in turns, in one thread.

Invariant: nothing that is kept grows with the run, but for one short record of each kill.
"""

from __future__ import annotations

import http.client
import random
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from loadtest.cluster.errors import ClusterError
from loadtest.cluster.own import OwnCluster
from loadtest.distributions import Distribution
from loadtest.progress import Progress
from loadtest.runs import RunRow, Started
from loadtest.soak.kills import Killer
from loadtest.soak.ledger import Ledger
from loadtest.soak.lines import Lines
from loadtest.soak.load import Load
from loadtest.soak.sampling import sample
from ringcron.clock import SystemClock

TURN_SECONDS: Final = 0.1
SAMPLE_SECONDS: Final = 5.0
RUN_ROWS_SECONDS: Final = 45.0
"""Run rows are read so long after the claim: three leases. By then the run has ended, or was taken from the dead."""
PATIENCE_SECONDS: Final = 60.0
"""What was not claimed for the last time so long after its instant was missed: a lease and a takeover, three times."""
END_SECONDS: Final = 120.0
"""After the last instant nothing may be due or claimed for longer."""


class Soak:
    """Runs once, by `run`. Instants of its lines are seconds since `load.begin`."""

    def __init__(
        self,
        cluster: OwnCluster,
        progress: Progress,
        *,
        due_per_second: float,
        kill_every: float,
        kill_coordinator_every: float,
        seed: int,
    ) -> None:
        self.lines = Lines()
        self.ledger = Ledger(self._runs_of)
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.settled_seconds = 0.0
        self.skipped = 0
        self._cluster = cluster
        self._progress = progress
        self._clock = SystemClock()
        self._offset = cluster.database.clock_offset()
        choose = random.Random(seed)
        self.load = Load(
            cluster.api_url, self.ledger, handler=cluster.handler, due_per_second=due_per_second, choose=choose
        )
        self._kill_every = kill_every
        self._kill_coordinator_every = kill_coordinator_every
        self._random = choose
        self.killer: Killer
        self._delays: list[float] = []
        self._read_until = 0.0
        self._failed_samples = 0

    def run(self, seconds: float) -> None:
        """The whole of it; what went wrong is in `problems` and in those of the ledger, the load and the killer."""
        self._progress.say("making the recurring jobs")
        self.load.make_recurring(self._now(), seconds)
        self._read_until = self.load.begin - 1
        self._progress.say("waiting for the whole minute at which it begins")
        time.sleep(max(0.0, self.load.begin - self._now()))
        self.killer = Killer(
            self._cluster,
            self._random,
            now=self._clock.elapsed(),
            every=self._kill_every,
            coordinator_every=self._kill_coordinator_every,
        )
        self._watch(int(seconds))
        self._settle()

    @property
    def origin(self) -> float:
        """`load.begin` on the elapsed clock."""
        return self.load.begin - self._offset

    def _now(self) -> float:
        return self._clock.elapsed() + self._offset

    def _watch(self, seconds: int) -> None:
        sampled = self._clock.elapsed()
        while (now := self._now()) < self.load.end:
            self.load.turn(now)
            self.killer.turn(self._clock.elapsed(), killing=True)
            if self._clock.elapsed() - sampled >= SAMPLE_SECONDS:
                sampled += SAMPLE_SECONDS
                self._account()
                self._sample(now - self.load.begin)
                self._progress.count(
                    "seconds",
                    int(now - self.load.begin),
                    seconds,
                    f"{self.ledger.counts['succeeded']:,} runs judged, {len(self.killer.kills)} kills",
                )
            time.sleep(TURN_SECONDS)
        self._progress.count("seconds", seconds, seconds)

    def _settle(self) -> None:
        """Bring everybody back, wait until nothing is due or claimed, and judge the rest."""
        self._progress.say("waiting until everything has ended")
        self.load.enter_ticks(self.load.end)
        database = self._cluster.database
        since = datetime.fromtimestamp(self.load.begin, UTC)
        bounds = {
            "from_at": since - timedelta(seconds=PATIENCE_SECONDS),
            "until_at": datetime.fromtimestamp(self.load.end, UTC) + timedelta(hours=2),
            "handler": self._cluster.handler,
        }
        while left := database.run("jobs_left", **bounds)[0][1]:
            if self._now() > self.load.end + END_SECONDS:
                break
            self.killer.turn(self._clock.elapsed(), killing=False)
            self._account()
            time.sleep(TURN_SECONDS * 5)
        self.settled_seconds = max(0.0, self._now() - self.load.end)
        if left:
            self.problems.append(f"jobs are due or claimed {END_SECONDS:g} s after the last instant")
        self._account(rows_until=self._now() + 1)
        self.ledger.close(float("inf"))
        self.skipped = database.value("soak/count_skips", since=since)
        if self.skipped:
            self.notes.append(f"{self.skipped} ticks were skipped by ringcron; they are among those never completed")
        if self._failed_samples:
            self.notes.append(f"{self._failed_samples} samples could not be taken: the API did not answer")

    def _account(self, *, rows_until: float | None = None) -> None:
        """Read what has been written down since the last time, and judge what is over."""
        self._offset = self._cluster.database.clock_offset()
        for start in self._cluster.starts.read():
            at = start.at + self._offset
            before = self.ledger.started(Started(start.job_id, start.scheduled_for, at), start.pid)
            if before is None:
                self._delays.append(at - start.scheduled_for)
            else:
                self.killer.began_again(before, start.at)
        until = self._now() - RUN_ROWS_SECONDS if rows_until is None else rows_until
        if until <= self._read_until:
            return
        bounds = {"since": _instant(self._read_until), "until": _instant(until)}
        for row in self._cluster.database.run("soak/read_runs", **bounds):
            self.ledger.ran(RunRow(*row))
        self._read_until = until
        self.ledger.close(until - PATIENCE_SECONDS)

    def _sample(self, at: float) -> None:
        try:
            found = sample(self._cluster)
            self.lines.add(at, {"lag": found.pop("lag")}, greatest=True)
            self.lines.add(at, found)
        except (ClusterError, OSError, http.client.HTTPException):
            self._failed_samples += 1
        if self._delays:
            delays = Distribution.of(self._delays)
            self.lines.add(at, {"delay p50": delays.p50, "starts a second": delays.count / SAMPLE_SECONDS})
            self.lines.add(at, {"delay p99": delays.p99, "delay most": delays.greatest}, greatest=True)
            self._delays = []

    def _runs_of(self, ids: list[UUID], since: float) -> Iterable[RunRow]:
        rows = self._cluster.database.run("soak/read_runs_of", ids=ids, since=_instant(since))
        return [RunRow(*row) for row in rows]


def _instant(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
