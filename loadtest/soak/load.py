"""What a soak asks for: one-offs, created through the API as it goes, and jobs that recur every minute.

Invariant: whatever is asked for is in the ledger before it is due. Ticks are plain arithmetic, not the product's
enumerator: a job of phase p ticks p seconds after each whole minute, from the first minute to the end.
"""

from __future__ import annotations

import http.client
import random
from collections import defaultdict
from typing import Any, Final
from uuid import UUID

from loadtest.api_call import ApiConnection
from loadtest.chaos.asked import ANCHOR, wire
from loadtest.cluster.errors import ClusterError
from loadtest.soak.ledger import Ledger

RECURRING_SHARE: Final = 0.3
"""Of what is due per second."""
CRON_SHARE: Final = 0.33
"""Of the recurring ones: `* * * * *`, all in the first second of the minute. The others are spread over it."""
MINUTE: Final = 60
AHEAD_SECONDS: Final = 2.0
"""One-offs are due so long after they are asked for, and within a second from then."""
BEGIN_SECONDS: Final = 5.0
"""The first minute that counts begins so long after the recurring jobs were made, at least."""
BATCH: Final = 2000
MOST_AT_ONCE: Final = 2000
LONG_SHARE: Final = 0.02
LONG_SECONDS: Final = 5.0
SHORT_SECONDS: Final = 0.3
RETRY: Final = {"maxLost": 50}


class Load:
    """All instants are Unix seconds of the database's clock, which the caller reads."""

    def __init__(
        self, api_url: str, ledger: Ledger, *, handler: str, due_per_second: float, choose: random.Random
    ) -> None:
        self.created = 0
        """One-offs."""
        self.recurring = 0
        self.begin = 0.0
        self.end = 0.0
        self.failures: list[str] = []
        self._api_url = api_url
        self._ledger = ledger
        self._handler = handler
        self._random = choose
        self._recurring_rate = due_per_second * RECURRING_SHARE
        self._rate = due_per_second - self._recurring_rate
        self._phases: dict[int, list[UUID]] = defaultdict(list)
        self._told = 0.0

    def make_recurring(self, now: float, seconds: float) -> None:
        """Make the recurring jobs; the run begins at `begin`, a whole minute, and is over `seconds` later, at `end`."""
        count = round(self._recurring_rate * MINUTE)
        self.begin = (now + BEGIN_SECONDS + count / BATCH) // MINUTE * MINUTE + MINUTE
        self.end = self.begin + seconds
        self._told = self.begin - 1
        bounds = {"startAt": wire(self.begin), "endAt": wire(self.end)}
        cron = round(count * CRON_SHARE)
        phases = [0] * cron + [number % MINUTE for number in range(count - cron)]
        jobs: list[dict[str, Any]] = []
        for number, phase in enumerate(phases):
            every = {"every": f"PT{MINUTE}S", "anchor": wire(ANCHOR + phase)}
            jobs.append(self._job({"schedule": {**({"cron": "* * * * *"} if number < cron else every), **bounds}}))
        for at in range(0, len(jobs), BATCH):
            ids = self._create(jobs[at : at + BATCH])
            for phase, job_id in zip(phases[at : at + BATCH], ids, strict=True):
                self._phases[phase].append(job_id)
        self.recurring = count

    def enter_ticks(self, now: float) -> None:
        """Enter the ticks of the next seconds into the ledger."""
        while self._told + 1 <= min(now + AHEAD_SECONDS, self.end):
            self._told += 1
            for job_id in self._phases[int(self._told) % MINUTE]:
                self._ledger.expect(job_id, self._told)

    def turn(self, now: float) -> None:
        """Ask for the one-offs that are owed by now, and enter the ticks."""
        self.enter_ticks(now)
        owed = int(min(self._rate * (min(now, self.end) - self.begin) - self.created, MOST_AT_ONCE))
        if owed < max(1, self._rate):
            return
        dues = [round(now + AHEAD_SECONDS + self._random.random(), 3) for _ in range(owed)]
        self.created += owed  # those that fail are faults, and are not asked for again
        try:
            ids = self._create([self._job({"runAt": wire(due)}) for due in dues])
        except (ClusterError, OSError, http.client.HTTPException) as error:
            self.failures.append(f"{owed} jobs could not be created: {error}")
            return
        for job_id, due in zip(ids, dues, strict=True):
            self._ledger.expect(job_id, due)

    def _create(self, jobs: list[dict[str, Any]]) -> list[UUID]:
        with ApiConnection(self._api_url) as api:
            answer = api.call("POST", "/jobs/batch?atomic=true", {"jobs": jobs}, expect=201)
        return [UUID(result["jobId"]) for result in answer["results"]]

    def _job(self, when: dict[str, Any]) -> dict[str, Any]:
        long = self._random.random() < LONG_SHARE
        seconds = LONG_SECONDS if long else round(self._random.random() * SHORT_SECONDS, 3)
        return {"handler": self._handler, "payload": {"seconds": seconds}, "retry": RETRY, **when}
