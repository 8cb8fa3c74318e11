"""What a chaos run asks for: one-offs and recurring jobs, some failing, some cancelled at the last moment.

Invariants: every job has a name of its own, so it can be told whatever its create was answered. Recurring jobs end with
the run (`endAt`), so that at its end every tick has been decided. The reference ticks are plain arithmetic of this
module, and nothing of the product's.

Runs in a thread of its own, so that a nemesis that waits does not keep it from calling.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import secrets
import threading
from collections.abc import Coroutine
from typing import Any, Final

from loadtest.chaos.asked import ANCHOR, Asked, wire
from loadtest.chaos.calls import Caller
from loadtest.chaos.handlers import ASYNC, PLAIN
from ringcron.clock import SystemClock

MINUTE: Final = 60
DAY: Final = 86400.0
PERIODS: Final = (4, 5, 7, 10, 12)
"""Seconds between the ticks of the `every` jobs."""
RECURRING_SHARE: Final = 0.3
"""Of what is due per second."""
CRON_JOBS: Final = 12
CANCELLED_SHARE: Final = 0.12
DUPLICATED_SHARE: Final = 0.08
DISCONNECTED_SHARE: Final = 0.04
FAILING_SHARE: Final = 0.15
PLAIN_SHARE: Final = 0.05
LONG_SHARE: Final = 0.02
LONG_SECONDS: Final = 24.0
"""Longer than three leases: a few that are renewed often, and are still going when a stopped worker wakes."""
MOVES_BACK: Final = 60
"""A job is moved back from tomorrow so often until it is answered: nothing may be left to run."""
HASTY_SHARE: Final = 0.05
HASTY_SECONDS: Final = 7.0
"""When a stopped worker wakes, such a run is over there, and goes on where it was begun again: its completion goes out
in the same breath as the renewal, and only the fence stands against it."""
PROBES_AT_ONCE: Final = 8
AROUND_SECONDS: Final = 0.005
STORM_A_SECOND: Final = 12.0
CALLS_OUT: Final = 24
"""While so many calls are out, nothing new is asked for: load that nobody can serve proves nothing."""
RETRY: Final = {"maxAttempts": 4, "minBackoff": "PT0.5S", "maxBackoff": "PT2S", "maxLost": 50}


class Workload:
    """A context: asks from `begin` to `stop`."""

    def __init__(self, port: int, *, clock_offset: float, due_per_second: float, seed: int) -> None:
        """`clock_offset`: what to add to the elapsed clock to get the database's."""
        self.asked: dict[str, Asked] = {}
        self.caller = Caller(port)
        self.storming = False
        """While set, calls that hurt come on top."""
        self._port = port
        self._rate = due_per_second
        self._offset = clock_offset
        self._random = random.Random(seed)
        self._clock = SystemClock()
        self._names = 0
        self._end = 0.0
        self._stop = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="chaos workload", daemon=True)

    def begin(self, seconds: float) -> None:
        """Ask for so long; then nothing recurs any more."""
        self._end = float(int(self.now() + seconds))
        self._thread.start()

    def stop(self) -> None:
        """Ask for nothing more, and wait for the calls that are out."""
        self._stop.set()
        self._thread.join()

    def now(self) -> float:
        """The database's clock, by ours."""
        return self._clock.elapsed() + self._offset

    def shift(self, seconds: float) -> None:
        """The database's clock has stepped."""
        self._offset += seconds

    def probe(self, name: str, count: int) -> None:
        """Create so many short one-offs that are due at once, and wait for their creation. After `stop` only."""

        async def create() -> None:
            async with Caller(self._port) as caller:
                due = round(self.now() + 2.0, 3)
                job: dict[str, Any] = {
                    "handler": ASYNC,
                    "payload": {"seconds": 0.05},
                    "runAt": wire(due),
                    "retry": dict(RETRY),
                }
                jobs = [{**job, "name": f"{name}-{number}"} for number in range(count)]
                few = asyncio.Semaphore(PROBES_AT_ONCE)

                async def create_one(one: dict[str, Any]) -> None:
                    async with few:
                        await caller.create(one)

                await asyncio.gather(*map(create_one, jobs))
                self.caller.calls += caller.calls
                self.asked |= {one["name"]: Asked(name=one["name"], run_at=due) for one in jobs}

        asyncio.run(create())

    def herd(self, count: int, seconds: float, ahead: float) -> None:
        """Create so many one-offs that are due in the same instant, `ahead` from now. From any thread."""
        due = round(self.now() + ahead, 3)

        def create() -> None:
            for _ in range(count):
                job = self.one_off(seconds, run_at=due)
                job["handler"] = ASYNC
                self._start(self.caller.create(job))

        self._loop.call_soon_threadsafe(create)

    def misbehave(self, what: str, seconds: float, *, plain: bool) -> None:
        """Create a one-off, due soon, that does this to its process. From any thread."""

        def create() -> None:
            job = self.one_off(seconds, due_in=0.5)
            job["handler"] = PLAIN if plain else ASYNC
            job["payload"]["do"] = what
            job["payload"]["fail"] = 0
            job["retry"] = {**RETRY, "maxLost": 2}
            self._start(self.caller.create(job))

        self._loop.call_soon_threadsafe(create)

    def move_one(self) -> None:
        """Create a one-off, move it to another day as it falls due, and back. From any thread."""
        self._loop.call_soon_threadsafe(lambda: self._start(self._move()))

    async def _move(self) -> None:
        job = self.one_off(self._seconds(), due_in=1.0)
        one = self.asked[job["name"]]
        self.asked[job["name"]] = dataclasses.replace(one, moved=True)
        job_id = await self.caller.create(job)
        if job_id is None or one.run_at is None:
            return
        await asyncio.sleep(max(0.0, one.run_at - self.now() + self._random.uniform(-AROUND_SECONDS, 0.1)))
        await self.caller.patch(job_id, {"runAt": wire(round(self.now() + DAY, 3))})
        await asyncio.sleep(self._random.uniform(0, 0.3))
        for _ in range(MOVES_BACK):
            if await self.caller.patch(job_id, {"runAt": wire(round(self.now(), 3))}) not in (None, 503):
                return
            await asyncio.sleep(1.0)

    def one_off(self, seconds: float, *, due_in: float = 0.0, run_at: float | None = None) -> dict[str, Any]:
        """A one-off that takes so long, as the API is asked for it."""
        at = round(run_at if run_at is not None else self.now() + due_in, 3)
        job = self._job(seconds)
        job["runAt"] = wire(at)
        self.asked[job["name"]] = Asked(name=job["name"], run_at=at)
        return job

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._ask())
        finally:
            self._loop.close()

    async def _ask(self) -> None:
        async with self.caller:
            for job in self._recurring():
                self._start(self.caller.create(job))
            interval = 1 / max(0.1, self._rate * (1 - RECURRING_SHARE))
            due = self._clock.elapsed()
            stormed = due
            while not self._stop.is_set():
                await asyncio.sleep(max(0.0, due - self._clock.elapsed()))
                due = max(due + interval, self._clock.elapsed() - 1.0)
                if self.caller.out < CALLS_OUT:
                    self._start(self._one())
                while self.storming and stormed < self._clock.elapsed():
                    stormed += 1 / STORM_A_SECOND
                    if self.caller.out < CALLS_OUT:
                        self._start(self._hurt())
                stormed = max(stormed, self._clock.elapsed())
            self.caller.stop_trying()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=60)

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _recurring(self) -> list[dict[str, Any]]:
        jobs = []
        wanted, rate = self._rate * RECURRING_SHARE, 0.0
        start = float(int(self.now()) + 4)
        while rate < wanted:
            period = self._random.choice(PERIODS)
            rate += 1 / period
            # Some are longer than their period: their ticks are skipped for overlap.
            seconds = self._seconds() if self._random.random() < 0.8 else period * 1.5
            job = self._job(seconds)
            job["schedule"] = {
                "every": f"PT{period}S",
                "anchor": wire(ANCHOR),
                "startAt": wire(start),
                "endAt": wire(self._end),
            }
            self.asked[job["name"]] = Asked(name=job["name"], every=period, start=start, end=self._end)
            jobs.append(job)
        for _ in range(CRON_JOBS):
            job = self._job(self._seconds())
            job["schedule"] = {"cron": "* * * * *", "startAt": wire(start), "endAt": wire(self._end)}
            self.asked[job["name"]] = Asked(name=job["name"], every=MINUTE, start=start, end=self._end)
            jobs.append(job)
        return jobs

    async def _one(self) -> None:
        """A one-off; some are asked for twice at once, or by somebody who leaves, or cancelled as they fall due."""
        chance = self._random.random()
        if chance < CANCELLED_SHARE:
            await self._cancel_at_due()
        elif chance < CANCELLED_SHARE + DUPLICATED_SHARE:
            await self._twice()
        elif chance < CANCELLED_SHARE + DUPLICATED_SHARE + DISCONNECTED_SHARE:
            await self._leave()
        else:
            await self.caller.create(self._plain_one_off())

    def _plain_one_off(self) -> dict[str, Any]:
        kind = self._random.random()
        seconds = self._seconds()
        if kind < LONG_SHARE:
            seconds = LONG_SECONDS
        elif kind < LONG_SHARE + HASTY_SHARE:
            seconds = HASTY_SECONDS
        job = self.one_off(seconds, due_in=self._random.uniform(0.2, 5.0))
        if kind < LONG_SHARE + HASTY_SHARE:
            job["payload"] |= {"fail": 0, "hasty": seconds == HASTY_SECONDS}
        return job

    async def _hurt(self) -> None:
        """One of the calls of a storm."""
        chance = self._random.random()
        if chance < 0.5:
            await self._cancel_at_due()
        elif chance < 0.75:
            await self._twice()
        elif chance < 0.9:
            await self._leave()
        else:
            await self.caller.dawdle(self._random.uniform(2, 8))

    async def _cancel_at_due(self) -> None:
        # Late enough that it is there by then: a busy machine takes long to create it.
        due_in = self._random.uniform(1.0, 3.0) + 2 * self.caller.usual_seconds
        job = self.one_off(self._seconds(), due_in=due_in)
        due = self.asked[job["name"]].run_at
        assert due is not None
        job_id = await self.caller.create(job)
        if job_id is None:
            return
        at = due + self._random.uniform(-AROUND_SECONDS, AROUND_SECONDS)
        await asyncio.sleep(max(0.0, at - self.now()))
        await self.caller.cancel(job_id)

    async def _twice(self) -> None:
        job = self.one_off(self._seconds(), due_in=self._random.uniform(0.2, 5.0))
        key = secrets.token_hex(12)
        await asyncio.gather(*(self.caller.create(job, idempotency_key=key) for _ in range(2)))

    async def _leave(self) -> None:
        job = self.one_off(self._seconds(), due_in=self._random.uniform(0.2, 5.0))
        key = secrets.token_hex(12)
        await self.caller.create_and_leave(job, key)
        await self.caller.create(job, idempotency_key=key)

    def _job(self, seconds: float) -> dict[str, Any]:
        self._names += 1
        fails = self._random.choice((1, 1, 2, 5)) if self._random.random() < FAILING_SHARE else 0
        name = f"chaos-{self._names}"
        return {
            "name": name,
            "handler": PLAIN if self._random.random() < PLAIN_SHARE else ASYNC,
            "payload": {"seconds": round(seconds, 3), "fail": fails},
            "retry": dict(RETRY),
            **({"key": name, "onConflict": "keep"} if self._random.random() < 0.2 else {}),
        }

    def _seconds(self) -> float:
        return self._random.uniform(0.2, 1.0) if self._random.random() < 0.7 else self._random.uniform(1.0, 3.0)
