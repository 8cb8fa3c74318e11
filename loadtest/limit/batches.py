"""The limit as batches: one blocking process."""

from __future__ import annotations

import os
import time
from typing import Any

import psycopg

from loadtest.limit.bare_jobs import (
    CLAIM,
    COMPLETE,
    ENQUEUE,
    NEXT_DUE,
    SLEEP_SECONDS,
    Claimed,
    bounds,
    complete_parameters,
    enqueue_parameters,
    seq_of,
)
from loadtest.peers.protocol import CHUNK, Order, StartLog, say_ready, say_took
from ringcron.clock import SystemClock


class Batches:
    """Claims, writes the starts down, completes; one connection."""

    def __init__(self, url: str) -> None:
        self._connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._cursor = self._connection.cursor(binary=True)
        self._clock = SystemClock()
        self._owner = f"limit-{os.getpid()}"
        self._log = StartLog()

    def close(self) -> None:
        self._connection.close()

    def step(self) -> int:
        """Claim and complete one batch; how many jobs that were."""
        within = bounds(self._clock.wall())
        claimed = [Claimed(*row) for row in self._cursor.execute(CLAIM, {"owner": self._owner, **within})]
        for claim in claimed:
            self._log.write(seq_of(claim.id))
        if claimed:
            self._cursor.execute(COMPLETE, complete_parameters(claimed, self._owner, within))
        return len(claimed)

    def seconds_to_next(self) -> float:
        """How long until a job is due, SLEEP_SECONDS at most."""
        row = self._cursor.execute(NEXT_DUE).fetchone()
        return SLEEP_SECONDS if row is None else min(max(row[0], 0.0), SLEEP_SECONDS)


def work(url: str) -> None:
    """Run jobs until killed."""
    batches = Batches(url)
    say_ready()
    while True:
        if not batches.step():
            time.sleep(batches.seconds_to_next())


def enqueue(url: str, order: Order) -> None:
    """Create the jobs of an order and say how long it took."""
    clock = SystemClock()
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        began = clock.elapsed()
        for chunk in order.chunks(CHUNK):
            connection.execute(ENQUEUE, enqueue_parameters(chunk))
        say_took(clock.elapsed() - began)
